import { expect, test } from 'vitest';
import { redactedConfig } from '../../../src/config/effective.ts';
import { ConfigError } from '../../../src/config/errors.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { reload } from '../../../src/config/reload.ts';
import { faultsOf, filesOf, load } from './support.ts';

test('a file of one value is enough, and so is an empty one', () => {
  expect(load('server:\n  port: 9000\n').config.server).toMatchObject({ port: 9000, host: '127.0.0.1' });
  expect(load('').config.server.port).toBe(8080);
  expect(load('# nothing\n---\n').config.server.port).toBe(8080);
});

test('a section whose members are all commented out is as if it were not there', () => {
  expect(load('cache:\n  classes:\n    list:\n      # fresh: 1s\n').config.cache.classes.list.freshMs).toBe(30_000);
});

test('lists can be written as YAML lists or with commas', () => {
  expect(load('server: {trustedProxies: [10.0.0.0/8, "::1"]}').config.server.trustedProxies).toEqual([
    '10.0.0.0/8',
    '::1/128',
  ]);
  expect(load('admin: {allowedHosts: "Gate.internal, gate"}').config.admin.allowedHosts).toEqual([
    'gate.internal',
    'gate',
  ]);
});

test.each([
  ['1B', 1],
  ['999B', 999],
  ['1kB', 1000],
  ['2GB', 2_000_000_000],
])('a memory of %s is %i bytes', (written, bytes) => {
  expect(load(`cache: {memory: ${written}}`).config.cache.memoryBytes).toBe(bytes);
});

test.each([
  'upstream: {maxResponse: 8}',
  'upstream: {maxResponse: 8mb}',
  'upstream: {maxResponse: 2GB}',
  'upstream: {maxResponse: null}',
])('%s is refused', (yaml) => {
  expect(faultsOf(() => load(yaml)).map(({ name }) => name)).toEqual(['upstream.maxResponse (my.yaml)']);
});

test.each([
  ['0%', 0],
  ['0.5%', 0.005],
  ['2%', 0.02],
  ['100%', 1],
])('a limit of %s outdated answers is a share of %d', (written, share) => {
  const { outdatedLimits } = load(`cache: {classes: {rubric: {outdatedLimit: ${written}}}}`).config.cache;
  expect([outdatedLimits.rubric, outdatedLimits.list]).toEqual([share, 0.02]);
});

test.each(['2', '0.02', '"2"', '101%', '-1%', '2 %', '"%"', 'null'])('a limit of %s is refused', (written) => {
  const faults = faultsOf(() => load(`cache: {classes: {rubric: {outdatedLimit: ${written}}}}`));
  expect(faults).toMatchObject([
    { name: 'cache.classes.rubric.outdatedLimit (my.yaml)', allowed: 'a percentage like 2% or 0.5%, from 0% to 100%' },
  ]);
});

test('limits of outdated answers change while the gateway runs', () => {
  const { inForce, needRestart } = reload(load(''), load('cache: {classes: {list: {outdatedLimit: 5%}}}'));
  expect([inForce.config.cache.outdatedLimits.list, needRestart]).toEqual([0.05, []]);
  expect(redactedConfig(inForce).settings).toMatchObject({
    cache: { classes: { list: { outdatedLimit: { value: '5%', origin: 'file' } } } },
  });
});

test('a value of the file that the environment overrides is not looked at', () => {
  expect(load('server: {port: nonsense}', { PORT: '9000' }).config.server.port).toBe(9000);
});

test('unknown members anywhere are refused with what was meant, whatever they are called', () => {
  const faults = faultsOf(() =>
    load('cache: {classes: {list: {freshMs: 1s}, reports: {fresh: 1s}}}\n__proto__: {a: 1}'),
  );
  expect(faults.map(({ name, problem }) => [name, problem])).toEqual([
    ['cache.classes.list.freshMs (my.yaml)', 'there is no such setting; did you mean "fresh"?'],
    ['cache.classes.reports (my.yaml)', 'there is no such setting'],
    ['__proto__ (my.yaml)', 'there is no such setting'],
  ]);
});

test.each([
  ['a: b: c', 'it cannot be read as YAML: block as implicit key at line 1, column 4'],
  ['server:\n  port: 1\n  port: 2', 'it cannot be read as YAML: duplicate key at line 3, column 3'],
  ['- 1', 'it does not hold names with values'],
  ['just text', 'it does not hold names with values'],
  ['upstream: {token: *hunter2}', 'it cannot be read as YAML: an alias has no anchor before it, or there are too many'],
  ['--- {}\n--- {}', 'it cannot be read as YAML: multiple docs at line 2, column 1'],
])('%j is refused as a whole, without quoting it', (yaml, problem) => {
  expect(faultsOf(() => load(yaml))).toMatchObject([{ name: 'my.yaml', given: null, problem }]);
});

test('a file that cannot be read is blamed on CONFIG_FILE', () => {
  const sources = { env: { CONFIG_FILE: 'none.yaml' }, readFile: filesOf({}) };
  expect(() => loadConfig(sources)).toThrow(ConfigError);
  expect(faultsOf(() => loadConfig(sources))).toMatchObject([
    { name: 'CONFIG_FILE', given: '"none.yaml"', problem: 'it cannot be read: there is no such file' },
  ]);
});

test('the effective configuration shows every value with its origin, and of secrets only whether they are set', () => {
  const loaded = load('rateLimit: {perMinute: 7}\nupstream: {url: "http://store/", timeout: 90000ms}', {
    UPSTREAM_TOKEN: 'hunter2',
    REDIS_URL: 'redis://:hunter2@redis',
    ADMIN_TOKEN: 'alice=hunter2',
    RATE_LIMIT_PER_HOUR: '70',
    CACHE_LIST_FRESH: '45s',
  });
  const effective = redactedConfig(loaded);
  expect(effective).toMatchObject({
    file: 'my.yaml',
    settings: {
      server: { port: { value: 8080, origin: 'default', from: null } },
      rateLimit: {
        perMinute: { value: 7, origin: 'file', from: 'rateLimit.perMinute (my.yaml)' },
        perHour: { value: 70, origin: 'environment', from: 'RATE_LIMIT_PER_HOUR' },
      },
      upstream: {
        url: { value: 'http://store', origin: 'file' },
        timeout: { value: '90000ms', origin: 'file' },
        token: { value: '(set, not shown)', origin: 'environment', from: 'UPSTREAM_TOKEN' },
      },
      redis: { url: { value: '(set, not shown)' }, cacheUrl: { value: null, origin: 'default' } },
      cache: { classes: { list: { fresh: { value: '45s', origin: 'environment', from: 'CACHE_LIST_FRESH' } } } },
    },
  });
  expect(JSON.stringify(effective)).not.toContain('hunter2');
});

test('of the shipped file only what somebody changed there counts as coming from the file', () => {
  const text = 'server: {port: 8080, workers: 1}\nrateLimit: {perMinute: 7}';
  const { resolved } = loadConfig({ env: {}, readFile: () => text });
  expect(resolved.filter(({ origin }) => origin === 'file').map(({ setting }) => setting.id)).toEqual([
    'rateLimit.perMinute',
  ]);
});
