/** Every environment variable: what it sets, a value that it takes, and values that it refuses. */
import { createSecretKey } from 'node:crypto';

export interface Variable {
  readonly name: string;
  /** The setting of the file that it overrides. */
  readonly key: string;
  /** It may stand in a file that `<name>_FILE` names, and is never shown. */
  readonly isSecret: boolean;
  readonly written: string;
  /** Where the value is in the configuration, and what it is. */
  readonly path: string;
  readonly value: unknown;
  readonly allowed: string;
  readonly refused: readonly string[];
}

const HOST = 'an IP address or a host name, without port or brackets, such as 127.0.0.1, 0.0.0.0, :: or localhost';
const PORT = 'an integer from 0 to 65535 (0 takes any free port)';
const LIMIT = 'an integer from 1 to 1000000000';
const CIDR = 'CIDR blocks, as a list or with commas between them, such as 10.0.0.0/8, fd00::/8';
const HOSTS = 'host names or IP addresses, without ports, as a list or with commas between them';
const URL =
  'an http:// or https:// address without user name, query and fragment, such as https://store.example:8443/base';
const REDIS =
  'redis://[user:password@]host[:port][/db], redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/primary[/db]; rediss for TLS';
const TOKENS =
  'one token, or name=token or name:role=token pairs with commas between them; a role is one of viewer, operator, keys, changes, admin (the default); a token is 1 to 512 visible ASCII characters without spaces and commas';
const TOKEN = '1 to 4096 visible ASCII characters without spaces';
const KEYS =
  'one or more keys of 32 bytes in base64, with commas between them: the first encrypts, all decrypt; make one with: openssl rand -base64 32';
const KEY_A = Buffer.alloc(32, 'a');
const KEY_B = Buffer.alloc(32, 'b');
const TWO_KEYS = `${KEY_A.toString('base64')}, ${KEY_B.toString('base64')}`;
const SHORT_KEY = Buffer.alloc(24, 'hunter2').toString('base64');
const NO_KEYS = [SHORT_KEY, `${KEY_A.toString('base64')},`, `${KEY_A.toString('base64')},${KEY_A.toString('base64')}`];
const SIGNING =
  'one or more secrets with commas between them, each whsec_ and 24 to 64 bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)';
const SECRET_A = `whsec_${KEY_A.toString('base64')}`;
const TWO_SECRETS = `${SECRET_A}, whsec_${KEY_B.toString('base64')}`;
const NO_SECRETS = [
  KEY_A.toString('base64'),
  'whsec_hunter2',
  `whsec_${Buffer.alloc(16).toString('base64')}`,
  `${SECRET_A},`,
  `${SECRET_A},${SECRET_A}`,
];
const LEVELS = 'one of trace, debug, info, warn, error, fatal, silent';
const duration = (from: string, to: string): string =>
  `a duration like 250ms, 30s, 5m, 2h, 7d or 0s, from ${from} to ${to}`;

const ALICE_AND_BOB = [
  { name: 'alice', role: 'admin', token: 't1' },
  { name: 'bob', role: 'viewer', token: 'c2VjcmV0Cg==' },
];
const NO_ROLE =
  'has no known role between its ":" and "="; if they belong to a token, write a name before it: name=token';
const PROXIES = ['10.0.0.0/8', 'fd00::/8', '192.0.2.7/32'];
const NO_PAIRS = [
  'two words',
  'alice=a,b',
  'alice=a,',
  'alice=a,alice=b',
  'alice=a,bob=a',
  'eve:Viewer=a',
  'alice=a,eve:=b',
];
const NO_CIDRS = ['10.0.0.0/33', '::/129', '10.0.0.0/8,', '10.0.0.0/8/8', 'loopback'];
const NO_DURATIONS = ['11m', '-1s', '30', '1.5s', '1s ', '1S', '1s30ms', '1234567890123s'];
const NO_URLS = ['store.example', 'ftp://store.example', 'https://store.example/?a=b', 'https://store.example/#a'];

/** The message about a refused value, if it says more than the allowed values. */
export const PROBLEMS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(NO_CIDRS.map((text) => [text, `"${text}" is none`])),
  '10.0.0.0/8,': '"" is none',
  'two words': 'part 1 (between commas) is not a name=token pair',
  'alice=a,b': 'part 2 (between commas) is not a name=token pair',
  'alice=a,': 'part 2 (between commas) is not a name=token pair',
  'alice=a,alice=b': 'the name of part 2 is given twice',
  'alice=a,bob=a': 'the token of part 2 is given twice',
  'eve:Viewer=a': `part 1 ${NO_ROLE}`,
  'alice=a,eve:=b': `part 2 ${NO_ROLE}`,
  [SHORT_KEY]: 'key 1 has 24 bytes instead of 32',
  [NO_KEYS[1] ?? '']: 'key 2 (between commas) is not in base64',
  [NO_KEYS[2] ?? '']: 'key 2 is given twice',
  [NO_SECRETS[0] ?? '']: 'secret 1 (between commas) does not begin with whsec_',
  [NO_SECRETS[1] ?? '']: 'secret 1 is not in base64',
  [NO_SECRETS[2] ?? '']: 'secret 1 has 16 bytes',
  [NO_SECRETS[3] ?? '']: 'secret 2 (between commas) does not begin with whsec_',
  [NO_SECRETS[4] ?? '']: 'secret 2 is given twice',
  'gate:8081': '"gate:8081" is none',
  'hunter2:6379':
    'it is none of redis://host:port, redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/primary (rediss for TLS)',
  'redis://:hunter2@a,b':
    'it names several hosts: a Cluster begins with redis+cluster://, Sentinels with redis+sentinel://',
  'https://store.example/?a=b': 'it holds a query or a fragment',
  'https://store.example/#a': 'it holds a query or a fragment',
};

type Row = readonly [
  name: string,
  key: string,
  written: string,
  value: unknown,
  allowed: string,
  refused: readonly string[],
  path?: string,
];

const ROWS: readonly Row[] = [
  ['HOST', 'server.host', '0.0.0.0', '0.0.0.0', HOST, ['http://x', '1.2.3', '[::1]', 'a b']],
  ['PORT', 'server.port', '0', 0, PORT, ['65536', '-1', '80.0', '0x50', ' 80']],
  ['TRUSTED_PROXIES', 'server.trustedProxies', '10.0.0.0/8, fd00::/8,192.0.2.7', PROXIES, CIDR, NO_CIDRS],
  ['DRAIN_DELAY', 'server.drainDelay', '0s', 0, duration('0s', '10m'), NO_DURATIONS, 'server.drainDelayMs'],
  ['WORKERS', 'server.workers', '4', 4, 'an integer from 1 to 256', ['0', '257']],
  ['ADMIN_HOST', 'admin.host', '127.8.9.1', '127.8.9.1', HOST, ['a b']],
  ['ADMIN_PORT', 'admin.port', '65535', 65_535, PORT, ['65536']],
  ['ADMIN_TOKEN', 'admin.token', 'alice=t1, bob:viewer=c2VjcmV0Cg==', ALICE_AND_BOB, TOKENS, NO_PAIRS, 'admin.tokens'],
  ['ADMIN_ALLOWED_HOSTS', 'admin.allowedHosts', 'Gate.example, ::1', ['gate.example', '::1'], HOSTS, ['gate:8081']],
  ['REDIS_URL', 'redis.url', 'rediss://u:pw@redis:6380/2', 'rediss://u:pw@redis:6380/2', REDIS, ['hunter2:6379']],
  ['REDIS_CACHE_URL', 'redis.cacheUrl', 'redis+cluster://a,b', 'redis+cluster://a,b', REDIS, ['redis://:hunter2@a,b']],
  ['UPSTREAM_URL', 'upstream.url', 'https://store.example:8443/b/', 'https://store.example:8443/b', URL, NO_URLS],
  ['UPSTREAM_TOKEN', 'upstream.token', 'u!p', 'u!p', TOKEN, ['hunter2 hunter2', 'a\nb']],
  ['UPSTREAM_TIMEOUT', 'upstream.timeout', '1500ms', 1500, duration('1ms', '5m'), ['0s', '6m'], 'upstream.timeoutMs'],
  ['KEY_GRACE', 'keys.grace', '2h', 7_200_000, duration('0s', '7d'), ['10', '8d'], 'keys.graceMs'],
  ['RATE_LIMIT_PER_MINUTE', 'rateLimit.perMinute', '1', 1, LIMIT, ['0', '1000000001', '1e3']],
  ['RATE_LIMIT_PER_HOUR', 'rateLimit.perHour', '1000000000', 1_000_000_000, LIMIT, ['0', '1000000001', '1e3']],
  ['CACHE_REFRESH_RATE', 'cache.refreshRate', '10', 10, 'an integer from 0 to 10000', ['-1', '10001', '1.5']],
  ['CHANGES_ANNOUNCED', 'changes.announced', 'true', true, 'true or false', ['yes', '1']],
  ['CHANGES_SECRET', 'changes.secret', TWO_SECRETS, TWO_SECRETS.split(', '), SIGNING, NO_SECRETS, 'changes.secrets'],
  [
    'CACHE_ENCRYPTION_KEYS',
    'cache.encryptionKeys',
    TWO_KEYS,
    [createSecretKey(KEY_A), createSecretKey(KEY_B)],
    KEYS,
    NO_KEYS,
  ],
  ...['list', 'evaluation', 'transcript', 'scorecard', 'rubric', 'dealInsights', 'notFound'].flatMap((cacheClass) =>
    ['fresh', 'stale', 'error'].map((time, place): Row => {
      const name = cacheClass.replaceAll(/(?=[A-Z])/g, '_').toUpperCase();
      const key = `cache.classes.${cacheClass}.${time}`;
      const value = (place + 1) * 86_400_000;
      return [
        `CACHE_${name}_${time.toUpperCase()}`,
        key,
        `${place + 1}d`,
        value,
        duration('0s', '365d'),
        ['366d'],
        `${key}Ms`,
      ];
    }),
  ),
  ['LOG_LEVEL', 'log.level', 'silent', 'silent', LEVELS, ['INFO']],
];

const SECRETS = [
  'ADMIN_TOKEN',
  'CHANGES_SECRET',
  'CACHE_ENCRYPTION_KEYS',
  'REDIS_URL',
  'REDIS_CACHE_URL',
  'UPSTREAM_TOKEN',
];

export const VARIABLES: readonly Variable[] = ROWS.map((row) => {
  const [name, key, written, value, allowed, refused, path = key] = row;
  return { name, key, written, value, allowed, refused, path, isSecret: SECRETS.includes(name) };
});

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
