/** Every environment variable: what it sets, a value that it takes, and values that it refuses. */

export interface Variable {
  readonly name: string;
  /** The setting of the file that it overrides. */
  readonly key: string;
  /** It may stand in a file that `<name>_FILE` names, and is never shown. */
  readonly isSecret?: boolean;
  readonly written: string;
  /** Where the value is in the configuration, and what it is. */
  readonly path: string;
  readonly value: unknown;
  readonly allowed: string;
  /** Each with what is said of it, where there is more to say than what is allowed. */
  readonly refused: readonly (readonly [written: string, problem?: string])[];
}

const HOST = 'an IP address or a host name, without port or brackets, such as 127.0.0.1, 0.0.0.0, :: or localhost';
const PORT = 'an integer from 0 to 65535 (0 takes any free port)';
const LIMIT = 'an integer from 1 to 1000000000';
const REDIS =
  'redis://[user:password@]host[:port][/db], redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/primary[/db]; rediss for TLS';
const duration = (from: string, to: string): string =>
  `a duration like 250ms, 30s, 5m, 2h, 7d or 0s, from ${from} to ${to}`;

const CACHE_CLASSES = [
  ['LIST', 'list'],
  ['EVALUATION', 'evaluation'],
  ['TRANSCRIPT', 'transcript'],
  ['SCORECARD', 'scorecard'],
  ['RUBRIC', 'rubric'],
  ['DEAL_INSIGHTS', 'dealInsights'],
  ['NOT_FOUND', 'notFound'],
] as const;

export const VARIABLES: readonly Variable[] = [
  {
    name: 'HOST',
    key: 'server.host',
    written: '0.0.0.0',
    path: 'server.host',
    value: '0.0.0.0',
    allowed: HOST,
    refused: [['http://x'], ['1.2.3'], ['[::1]'], ['a b']],
  },
  {
    name: 'PORT',
    key: 'server.port',
    written: '0',
    path: 'server.port',
    value: 0,
    allowed: PORT,
    refused: [['65536'], ['-1'], ['80.0'], ['0x50'], [' 80']],
  },
  {
    name: 'TRUSTED_PROXIES',
    key: 'server.trustedProxies',
    written: '10.0.0.0/8, fd00::/8,192.0.2.7',
    path: 'server.trustedProxies',
    value: ['10.0.0.0/8', 'fd00::/8', '192.0.2.7/32'],
    allowed: 'CIDR blocks, as a list or with commas between them, such as 10.0.0.0/8, fd00::/8',
    refused: [
      ['10.0.0.0/33', '"10.0.0.0/33" is none'],
      ['::/129', '"::/129" is none'],
      ['10.0.0.0/8,', '"" is none'],
      ['10.0.0.0/8/8', '"10.0.0.0/8/8" is none'],
      ['loopback', '"loopback" is none'],
    ],
  },
  {
    name: 'DRAIN_DELAY',
    key: 'server.drainDelay',
    written: '0s',
    path: 'server.drainDelayMs',
    value: 0,
    allowed: duration('0s', '10m'),
    refused: [['11m'], ['-1s'], ['30'], ['1.5s'], ['1s '], ['1S'], ['1s30ms'], ['1234567890123s']],
  },
  {
    name: 'WORKERS',
    key: 'server.workers',
    written: '4',
    path: 'server.workers',
    value: 4,
    allowed: 'an integer from 1 to 256',
    refused: [['0'], ['257']],
  },
  {
    name: 'ADMIN_HOST',
    key: 'admin.host',
    written: '127.8.9.1',
    path: 'admin.host',
    value: '127.8.9.1',
    allowed: HOST,
    refused: [['a b']],
  },
  {
    name: 'ADMIN_PORT',
    key: 'admin.port',
    written: '65535',
    path: 'admin.port',
    value: 65_535,
    allowed: PORT,
    refused: [['65536']],
  },
  {
    name: 'ADMIN_TOKEN',
    key: 'admin.token',
    isSecret: true,
    written: 'alice=t1, bob=c2VjcmV0Cg==',
    path: 'admin.tokens',
    value: [
      { name: 'alice', token: 't1' },
      { name: 'bob', token: 'c2VjcmV0Cg==' },
    ],
    allowed:
      'one token, or name=token pairs with commas between them; a token is 1 to 512 visible ASCII characters without spaces and commas',
    refused: [
      ['two words', 'part 1 (between commas) is not a name=token pair'],
      ['alice=a,b', 'part 2 (between commas) is not a name=token pair'],
      ['alice=a,', 'part 2 (between commas) is not a name=token pair'],
      ['alice=a,alice=b', 'the name of part 2 is given twice'],
      ['alice=a,bob=a', 'the token of part 2 is given twice'],
    ],
  },
  {
    name: 'ADMIN_ALLOWED_HOSTS',
    key: 'admin.allowedHosts',
    written: 'Gate.internal, ::1',
    path: 'admin.allowedHosts',
    value: ['gate.internal', '::1'],
    allowed: 'host names or IP addresses, without ports, as a list or with commas between them',
    refused: [['gate:8081', '"gate:8081" is none']],
  },
  {
    name: 'REDIS_URL',
    key: 'redis.url',
    isSecret: true,
    written: 'rediss://user:pw@redis.internal:6380/2',
    path: 'redis.url',
    value: 'rediss://user:pw@redis.internal:6380/2',
    allowed: REDIS,
    refused: [
      [
        'hunter2:6379',
        'it is none of redis://host:port, redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/primary (rediss for TLS)',
      ],
    ],
  },
  {
    name: 'REDIS_CACHE_URL',
    key: 'redis.cacheUrl',
    isSecret: true,
    written: 'redis+cluster://a:7000,b:7001',
    path: 'redis.cacheUrl',
    value: 'redis+cluster://a:7000,b:7001',
    allowed: REDIS,
    refused: [
      [
        'redis://:hunter2@a,b',
        'it names several hosts: a Cluster begins with redis+cluster://, Sentinels with redis+sentinel://',
      ],
    ],
  },
  {
    name: 'UPSTREAM_URL',
    key: 'upstream.url',
    written: 'https://store.example:8443/base/',
    path: 'upstream.url',
    value: 'https://store.example:8443/base',
    allowed:
      'an http:// or https:// address without user name, query and fragment, such as https://store.example:8443/base',
    refused: [
      ['store.example'],
      ['ftp://store.example'],
      ['https://store.example/?a=b', 'it holds a query or a fragment'],
      ['https://store.example/#a', 'it holds a query or a fragment'],
    ],
  },
  {
    name: 'UPSTREAM_TOKEN',
    key: 'upstream.token',
    isSecret: true,
    written: 'u!p',
    path: 'upstream.token',
    value: 'u!p',
    allowed: '1 to 4096 visible ASCII characters without spaces',
    refused: [['hunter2 hunter2'], ['a\nb']],
  },
  {
    name: 'UPSTREAM_TIMEOUT',
    key: 'upstream.timeout',
    written: '1500ms',
    path: 'upstream.timeoutMs',
    value: 1500,
    allowed: duration('1ms', '5m'),
    refused: [['0s'], ['6m']],
  },
  {
    name: 'KEYS_SOURCE',
    key: 'keys.source',
    written: 'upstream',
    path: 'keys.source',
    value: 'upstream',
    allowed: 'one of registry, upstream',
    refused: [['Registry']],
  },
  {
    name: 'KEY_GRACE',
    key: 'keys.grace',
    written: '2h',
    path: 'keys.graceMs',
    value: 7_200_000,
    allowed: duration('0s', '7d'),
    refused: [['10'], ['8d']],
  },
  ...(
    [
      ['RATE_LIMIT_PER_MINUTE', 'rateLimit.perMinute', '1', 1],
      ['RATE_LIMIT_PER_HOUR', 'rateLimit.perHour', '1000000000', 1_000_000_000],
    ] as const
  ).map(([name, key, written, value]) => ({
    name,
    key,
    written,
    path: key,
    value,
    allowed: LIMIT,
    refused: [['0'], ['1000000001'], ['1e3']] as const,
  })),
  ...CACHE_CLASSES.flatMap(([inName, inFile]) =>
    (['fresh', 'stale', 'error'] as const).map((time, place) => ({
      name: `CACHE_${inName}_${time.toUpperCase()}`,
      key: `cache.classes.${inFile}.${time}`,
      written: `${place + 1}d`,
      path: `cache.classes.${inFile}.${time}Ms`,
      value: (place + 1) * 86_400_000,
      allowed: duration('0s', '365d'),
      refused: [['366d']] as const,
    })),
  ),
  {
    name: 'LOG_LEVEL',
    key: 'log.level',
    written: 'silent',
    path: 'log.level',
    value: 'silent',
    allowed: 'one of trace, debug, info, warn, error, fatal, silent',
    refused: [['INFO']],
  },
];

/** OpenTelemetry's own that are heeded; those of OTLP may be set for traces or for all signals. */
export const OTEL_VARIABLES: readonly string[] = [
  'OTEL_SDK_DISABLED',
  'OTEL_TRACES_EXPORTER',
  ...[
    'ENDPOINT',
    'PROTOCOL',
    'HEADERS',
    'TIMEOUT',
    'COMPRESSION',
    'CERTIFICATE',
    'CLIENT_CERTIFICATE',
    'CLIENT_KEY',
  ].flatMap((option) => [`OTEL_EXPORTER_OTLP_${option}`, `OTEL_EXPORTER_OTLP_TRACES_${option}`]),
  'OTEL_TRACES_SAMPLER',
  'OTEL_TRACES_SAMPLER_ARG',
  'OTEL_PROPAGATORS',
  'OTEL_SERVICE_NAME',
  'OTEL_RESOURCE_ATTRIBUTES',
  'OTEL_BSP_MAX_QUEUE_SIZE',
  'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
  'OTEL_BSP_SCHEDULE_DELAY',
  'OTEL_BSP_EXPORT_TIMEOUT',
];
