import { expect, test } from 'vitest';
import { ConfigError } from '../../../src/config/errors.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { faultsOf, load } from './support.ts';

const DURATION = 'a duration like 250ms, 30s, 5m, 2h, 7d or 0s';

function loadFaulty(): void {
  load('sever: {}\nserver: {prot: 1, drainDelay: 5}\ncache: 3\n', {
    PORT: '65536',
    LOG_LEVEL: 'verbose',
    WORKERS: '2',
  });
}

test('all faults are listed at once, each as it was written, with what was given and what is allowed', () => {
  expect(loadFaulty).toThrow(ConfigError);
  expect(loadFaulty).toThrow(
    [
      'The configuration has 7 faults:',
      '  sever (my.yaml): there is no such setting; did you mean "server"?; allowed: server, admin, redis, upstream, keys, rateLimit, api, cache, log',
      '  server.prot (my.yaml): there is no such setting; did you mean "port"?; allowed: host, port, trustedProxies, drainDelay, maxConnections, maxInFlight, workers',
      '  cache (my.yaml): it is a section, and one value was given; allowed: a section with any of memory, classes',
      '  PORT: given "65536"; allowed: an integer from 0 to 65535 (0 takes any free port)',
      `  server.drainDelay (my.yaml): given 5; allowed: ${DURATION}, from 0s to 10m`,
      '  LOG_LEVEL: given "verbose"; allowed: one of trace, debug, info, warn, error, fatal, silent',
      '  WORKERS: given "2"; several processes share keys and quotas through Redis, and there is none; allowed: 1, or more with REDIS_URL or REDIS_URL_FILE set',
    ].join('\n'),
  );
});

test.each([
  ['HOST', 'http://x'],
  ['HOST', '1.2.3'],
  ['HOST', '[::1]'],
  ['HOST', 'a b'],
  ['PORT', '-1'],
  ['PORT', '80.0'],
  ['PORT', '0x50'],
  ['PORT', ' 80'],
  ['ADMIN_PORT', '65536'],
  ['ADMIN_TOKEN', 'two words'],
  ['ADMIN_TOKEN', 'alice=a,b'],
  ['ADMIN_TOKEN', 'alice=a,alice=b'],
  ['ADMIN_TOKEN', 'alice=a,bob=a'],
  ['ADMIN_TOKEN', 'alice=a,'],
  ['REDIS_URL', 'localhost:6379'],
  ['REDIS_URL', 'redis://'],
  ['REDIS_URL', 'redis://a,b'],
  ['REDIS_URL', 'redis://host:65536'],
  ['REDIS_URL', 'redis+cluster://a:1,,b:2'],
  ['UPSTREAM_URL', 'store.example'],
  ['UPSTREAM_URL', 'ftp://store.example'],
  ['UPSTREAM_URL', 'https://store.example/?a=b'],
  ['UPSTREAM_URL', 'https://store.example/#a'],
  ['UPSTREAM_URL', 'https://user@store.example'],
  ['UPSTREAM_TOKEN', 'a\nb'],
  ['UPSTREAM_TIMEOUT', '0s'],
  ['UPSTREAM_TIMEOUT', '6m'],
  ['KEYS_SOURCE', 'Registry'],
  ['KEY_GRACE', '10'],
  ['KEY_GRACE', '8d'],
  ['RATE_LIMIT_PER_MINUTE', '0'],
  ['RATE_LIMIT_PER_MINUTE', '1000000001'],
  ['RATE_LIMIT_PER_HOUR', '1e3'],
  ['TRUSTED_PROXIES', '10.0.0.0/33'],
  ['TRUSTED_PROXIES', '::/129'],
  ['TRUSTED_PROXIES', 'loopback'],
  ['TRUSTED_PROXIES', '10.0.0.0/8,'],
  ['TRUSTED_PROXIES', '10.0.0.0/8/8'],
  ['WORKERS', '0'],
  ['WORKERS', '257'],
  ['DRAIN_DELAY', '-1s'],
  ['DRAIN_DELAY', '11m'],
  ['LOG_LEVEL', 'INFO'],
  ['CACHE_LIST_FRESH', '366d'],
  ['CACHE_NOT_FOUND_ERROR', ''.padStart(13, '1')],
])('%s=%j is refused, and is the only fault', (name, value) => {
  const companions = { UPSTREAM_TOKEN: 'x', REDIS_URL: 'redis://h' };
  const faults = faultsOf(() => loadConfig({ env: { ...companions, [name]: value } }));
  expect(faults.map((fault) => fault.name)).toEqual([name]);
});

test.each([
  ['UPSTREAM_URL', 'https://user:hunter2@store.example'],
  ['ADMIN_TOKEN', 'hunter2=hunter2,hunter2'],
  ['UPSTREAM_TOKEN', 'hunter2 hunter2'],
  ['REDIS_URL', 'http://:hunter2@redis'],
])('no message shows the secret that a faulty %s holds', (name, value) => {
  const run = () => loadConfig({ env: { UPSTREAM_TOKEN: 'x', [name]: value } });
  expect(run).toThrow(ConfigError);
  expect(run).not.toThrow(/hunter2/);
});

test.each([
  [{ ADMIN_HOST: '0.0.0.0' }, 'ADMIN_HOST', '"0.0.0.0"'],
  [{ ADMIN_HOST: 'gateway.internal' }, 'ADMIN_HOST', '"gateway.internal"'],
  [{ WORKERS: '2' }, 'WORKERS', '"2"'],
  [{ REDIS_CACHE_URL: 'redis://h' }, 'REDIS_CACHE_URL', '(a secret, not shown)'],
  [{ PORT: '8081' }, 'ADMIN_PORT', '8081'],
  [{ PORT: '9000', ADMIN_PORT: '9000', HOST: '0.0.0.0' }, 'ADMIN_PORT', '"9000"'],
])('%j cannot go together with what is not set', (env, name, given) => {
  expect(faultsOf(() => loadConfig({ env }))).toMatchObject([{ name, given }]);
});

test.each([
  [{ ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN: 't' }],
  [{ ADMIN_HOST: '127.8.9.1' }],
  [{ ADMIN_HOST: '::1' }],
  [{ ADMIN_HOST: 'LOCALHOST' }],
  [{ WORKERS: '2', REDIS_URL: 'redis+sentinel://:pw@[fd00::1]:26379,b/main' }],
  [{ PORT: '0', ADMIN_PORT: '0' }],
  [{ PORT: '9000', ADMIN_PORT: '9000', HOST: '192.0.2.1' }],
])('%j is allowed', (env) => {
  expect(faultsOf(() => loadConfig({ env }))).toEqual([]);
});

test('nothing is said of how a value goes with another that is faulty itself', () => {
  const env = { ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN_FILE: '/none', WORKERS: '2', REDIS_URL: 'x' };
  expect(faultsOf(() => load('', env)).map(({ name }) => name)).toEqual(['ADMIN_TOKEN_FILE', 'REDIS_URL']);
});

test.each([
  ['one token', 's3cret', [{ name: 'admin', token: 's3cret' }]],
  ['one token that ends in Base64 padding', 'c2VjcmV0Cg==', [{ name: 'admin', token: 'c2VjcmV0Cg==' }]],
  ['a pair', 'alice=c2VjcmV0Cg==', [{ name: 'alice', token: 'c2VjcmV0Cg==' }]],
])('ADMIN_TOKEN is read as %s', (_, value, tokens) => {
  expect(loadConfig({ env: { ADMIN_TOKEN: value } }).config.admin.tokens).toEqual(tokens);
});

test('what is allowed but hardly meant is a warning', () => {
  const { warnings } = loadConfig({ env: { CACHE_RUBRIC_ERROR: '1m', UPSTREAM_TOKEN: 't' } });
  expect(warnings).toEqual([
    'cache.classes.rubric: "error" is shorter than "stale" and so changes nothing: a copy within "stale" is served whether the store fails or not.',
    'UPSTREAM_TOKEN is set and UPSTREAM_URL is not: the bundled sample store is used.',
  ]);
});

test('an address of a store without its token is allowed, with a warning', () => {
  const { config, warnings } = loadConfig({ env: { UPSTREAM_URL: 'http://store' } });
  expect(config.upstream).toMatchObject({ url: 'http://store', token: null });
  expect(warnings).toEqual([
    'UPSTREAM_URL is set and UPSTREAM_TOKEN is not: requests to the store carry no Authorization.',
  ]);
});
