import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { faultsOf, load } from './support.ts';

test('the environment overrides the file, and the file the defaults, a value at a time', () => {
  const { config } = load('rateLimit: {perMinute: 5, perHour: 50}\ncache: {classes: {list: {fresh: 1m}}}', {
    RATE_LIMIT_PER_HOUR: '60',
    CACHE_LIST_STALE: '2m',
  });
  expect(config.rateLimit).toEqual({ perMinute: 5, perHour: 60 });
  expect(config.cache.classes.list).toEqual({ freshMs: 60_000, staleMs: 120_000, errorMs: 3_600_000 });
});

test('every variable reaches its value', () => {
  const { config } = loadConfig({
    env: {
      HOST: '0.0.0.0',
      PORT: '0',
      ADMIN_HOST: '::',
      ADMIN_PORT: '65535',
      ADMIN_TOKEN: 'alice=t1, bob=t2==',
      REDIS_URL: 'rediss://user:pw@redis.internal:6380/2',
      REDIS_CACHE_URL: 'redis+cluster://a:7000,b:7001',
      UPSTREAM_URL: 'https://store.example:8443/base/',
      UPSTREAM_TOKEN: 'u!p',
      UPSTREAM_TIMEOUT: '1500ms',
      KEYS_SOURCE: 'upstream',
      KEY_GRACE: '1m',
      RATE_LIMIT_PER_MINUTE: '1',
      RATE_LIMIT_PER_HOUR: '1000000000',
      TRUSTED_PROXIES: '10.0.0.0/8,fd00::/8,192.0.2.7',
      WORKERS: '4',
      DRAIN_DELAY: '0s',
      LOG_LEVEL: 'silent',
    },
  });
  expect(config).toMatchObject({
    server: {
      host: '0.0.0.0',
      port: 0,
      trustedProxies: ['10.0.0.0/8', 'fd00::/8', '192.0.2.7/32'],
      drainDelayMs: 0,
      workers: 4,
    },
    admin: {
      host: '::',
      port: 65_535,
      tokens: [
        { name: 'alice', token: 't1' },
        { name: 'bob', token: 't2==' },
      ],
    },
    redis: { url: 'rediss://user:pw@redis.internal:6380/2', cacheUrl: 'redis+cluster://a:7000,b:7001' },
    upstream: { url: 'https://store.example:8443/base', token: 'u!p', timeoutMs: 1500 },
    keys: { source: 'upstream', graceMs: 60_000 },
    rateLimit: { perMinute: 1, perHour: 1_000_000_000 },
    log: { level: 'silent' },
  });
});

test.each([
  ['LIST', 'list'],
  ['EVALUATION', 'evaluation'],
  ['TRANSCRIPT', 'transcript'],
  ['SCORECARD', 'scorecard'],
  ['RUBRIC', 'rubric'],
  ['DEAL_INSIGHTS', 'dealInsights'],
  ['NOT_FOUND', 'notFound'],
] as const)('CACHE_%s_FRESH, _STALE and _ERROR set the times of %s', (variable, name) => {
  const env = {
    [`CACHE_${variable}_FRESH`]: '1s',
    [`CACHE_${variable}_STALE`]: '2s',
    [`CACHE_${variable}_ERROR`]: '3s',
  };
  expect(loadConfig({ env }).config.cache.classes[name]).toEqual({ freshMs: 1000, staleMs: 2000, errorMs: 3000 });
});

test('a variable that is set to nothing counts as not set', () => {
  const { config } = load('server: {port: 9000}', { PORT: '', REDIS_URL: '', REDIS_URL_FILE: '', CACHE_X_FRESH: '' });
  expect(config.server.port).toBe(9000);
  expect(config.redis.url).toBeNull();
});

test('an unknown cache time is refused with the one that was meant and the known ones', () => {
  const [fault, ...others] = faultsOf(() => load('', { CACHE_DEALINSIGHTS_STALE: '10m' }));
  expect(others).toEqual([]);
  expect(fault).toMatchObject({
    name: 'CACHE_DEALINSIGHTS_STALE',
    given: '"10m"',
    problem: 'there is no such cache time; did you mean CACHE_DEAL_INSIGHTS_STALE?',
  });
  expect(fault?.allowed).toMatch(/^one of CACHE_LIST_FRESH, .*, CACHE_NOT_FOUND_ERROR$/);
});

test.each(['ADMIN_TOKEN', 'UPSTREAM_TOKEN', 'REDIS_URL', 'REDIS_CACHE_URL'])(
  '%s can stand in a file, whose last line feed is left out',
  (name) => {
    const secret = name.startsWith('REDIS') ? 'redis://h' : 's3cret';
    const needed = name === 'REDIS_CACHE_URL' ? { REDIS_URL: 'redis://first' } : {};
    const { config, resolved } = load('', { ...needed, [`${name}_FILE`]: '/run/s' }, { '/run/s': `${secret}\r\n` });
    expect(JSON.stringify(config)).toContain(`"${secret}"`);
    expect(resolved.find(({ setting }) => setting.env === name)).toMatchObject({
      origin: 'environment',
      name: `${name}_FILE`,
    });
  },
);

test.each([
  [
    'both the secret and its file are given',
    { UPSTREAM_TOKEN: 'a', UPSTREAM_TOKEN_FILE: '/run/s' },
    'UPSTREAM_TOKEN is set too',
  ],
  ['the file is not there', { UPSTREAM_TOKEN_FILE: '/run/none' }, 'it cannot be read: there is no such file'],
  ['the file holds nothing', { UPSTREAM_TOKEN_FILE: '/run/empty' }, 'the file is empty'],
])('a secret is refused where %s', (_, env, problem) => {
  const faults = faultsOf(() => load('', env, { '/run/s': 'b\n', '/run/empty': '\n' }));
  expect(faults).toHaveLength(1);
  expect(faults[0]).toMatchObject({
    name: 'UPSTREAM_TOKEN_FILE',
    given: JSON.stringify(env.UPSTREAM_TOKEN_FILE),
    problem,
  });
});

test('a faulty value from a secret file is blamed on the file and not shown', () => {
  const faults = faultsOf(() => load('', { REDIS_URL_FILE: '/run/s' }, { '/run/s': 'http://pass@word' }));
  expect(faults).toMatchObject([{ name: 'REDIS_URL_FILE', given: '(a secret, not shown)' }]);
});
