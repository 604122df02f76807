/** Settings in the environment and in the file, and their result: a value, or an exact error. */
import { rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { openFolder } from '../../support/files.ts';
import { forFile } from '../../support/opened.ts';
import { PROBLEMS, VARIABLES } from './variables.ts';

/** Settings that others need to be allowed. */
const COMPANIONS = { UPSTREAM_URL: 'http://store', UPSTREAM_TOKEN: 'x', REDIS_URL: 'redis://h' };

const folder = await forFile(openFolder());
const file = folder.write('my.yaml', '');

type Env = Readonly<Record<string, string>>;

/** With a file of that text. */
function load(yaml: string, env: Env = {}) {
  folder.write('my.yaml', yaml);
  return loadConfig({ env: { CONFIG_FILE: file, ...env } });
}

/** The lines of the error, one a fault, in which the file is called `my.yaml`. */
function faultsOf(env: Env): readonly string[] {
  try {
    loadConfig({ env });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const [heading, ...faults] = error.message.replaceAll(file, 'my.yaml').split('\n');
    const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`;
    if (heading !== `The configuration has ${count}:`) throw error;
    return faults.map((fault) => fault.trim());
  }
  return [];
}

function fileFaults(yaml: string, env: Env = {}): readonly string[] {
  folder.write('my.yaml', yaml);
  return faultsOf({ CONFIG_FILE: file, ...env });
}

function memberAt(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce(
      (inner, name) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, name) : undefined),
      value,
    );
}

describe('environment variables', () => {
  test.each(VARIABLES)('$name sets $key, and refuses what it does not allow', (variable) => {
    const { name, written, path, value, allowed, refused, isSecret } = variable;
    const { config } = loadConfig({ env: { ...COMPANIONS, [name]: written } });
    expect(memberAt(config, path)).toEqual(value);
    for (const bad of refused) {
      const problem = PROBLEMS[bad];
      const given = isSecret ? '(a secret, not shown)' : JSON.stringify(bad);
      const parts = [`${name}: given ${given}`, ...(problem === undefined ? [] : [problem]), `allowed: ${allowed}`];
      expect(faultsOf({ ...COMPANIONS, [name]: bad })).toEqual([parts.join('; ')]);
    }
  });

  test.each(VARIABLES.filter(({ isSecret }) => isSecret))('$name can stand in a file', async ({ name, ...row }) => {
    const secret = folder.write('secret', `${row.written}\r\n`);
    const others = Object.fromEntries(Object.entries(COMPANIONS).filter(([other]) => other !== name));
    const env = { ...others, [`${name}_FILE`]: secret };
    expect(memberAt(loadConfig({ env }).config, row.path)).toEqual(row.value);
    const allowed = `allowed: a file that holds the value of ${name} and nothing else`;
    const given = `${name}_FILE: given "${secret}"`;
    expect(faultsOf({ ...env, [name]: row.written })).toEqual([
      `${given}; ${name} is set too; allowed: only one of ${name} and ${name}_FILE`,
    ]);
    folder.write('secret', '\n');
    expect(faultsOf(env)).toEqual([`${given}; the file is empty; ${allowed}`]);
    rmSync(secret);
    expect(faultsOf(env)).toEqual([`${given}; it cannot be read: there is no such file; ${allowed}`]);
    expect(faultsOf({ ...env, [`${name}_FILE`]: folder.path })[0]).toContain('it cannot be read: it is a folder');
  });

  test('a variable that is set to nothing counts as not set', async () => {
    const { config } = load('server: {port: 9000}', { PORT: '', REDIS_URL: '', REDIS_URL_FILE: '' });
    expect([config.server.port, config.redis.url]).toEqual([9000, null]);
    expect(faultsOf({ CACHE_X_FRESH: '' })).toEqual([]);
  });

  test('a cache time that is none is refused with the one that was meant', () => {
    const known = VARIABLES.map(({ name }) => name).filter((name) => /^CACHE_.*_(?:FRESH|STALE|ERROR)$/.test(name));
    expect(faultsOf({ CACHE_DEALINSIGHTS_STALE: '10m' })).toEqual([
      `CACHE_DEALINSIGHTS_STALE: given "10m"; there is no such cache time; did you mean CACHE_DEAL_INSIGHTS_STALE?; allowed: one of ${known.join(', ')}`,
    ]);
  });

  test('no message shows a password of an address, or more than 120 characters of a value', () => {
    expect(faultsOf({ ...COMPANIONS, UPSTREAM_URL: 'https://user:hunter2@store.example' })[0]).toMatch(
      /^UPSTREAM_URL: given "https:\/\/\*\*\*@store\.example"; it holds a user name or password; /,
    );
    expect(faultsOf({ LOG_LEVEL: 'x'.repeat(500) })[0]).toMatch(/^LOG_LEVEL: given "x{119}\.\.\.; /);
  });
});

const size = (from: string, to: string) => `a size like 500kB, 64MB or 1GB (units of 1000), from ${from} to ${to}`;

describe('the file', () => {
  test('the environment overrides the file, and the file the defaults, a value at a time', async () => {
    const { config } = load(
      'rateLimit: {perMinute: 5, perHour: 50}\ncache: {classes: {list: {fresh: 1m}}}\nserver: {port: nonsense}',
      { RATE_LIMIT_PER_HOUR: '60', CACHE_LIST_STALE: '2m', PORT: '9000' },
    );
    expect(config.rateLimit).toEqual({ perMinute: 5, perHour: 60 });
    expect(config.cache.classes.list).toMatchObject({ freshMs: 60_000, staleMs: 120_000, errorMs: 3_600_000 });
    expect(config.server.port).toBe(9000);
  });

  test.each([
    ['# nothing\n---\n', 'server.port', 8080],
    ['cache:\n  classes:\n    list:\n      # fresh: 1s\n', 'cache.classes.list.freshMs', 30_000],
    ['server: {trustedProxies: [10.0.0.0/8, "::1"]}', 'server.trustedProxies', ['10.0.0.0/8', '::1/128']],
    ['cache: {memory: 1B}', 'cache.memoryBytes', 1],
    ['cache: {memory: 500kB}', 'cache.memoryBytes', 500_000],
    ['cache: {memory: 2GB}', 'cache.memoryBytes', 2_000_000_000],
    ['cache: {classes: {rubric: {outdatedLimit: 0.5%}}}', 'cache.classes.rubric.outdatedLimit', 0.005],
    ['upstream: {maxRequestsPerSecond: 5, breakerPercent: null}', 'upstream.maxRequestsPerSecond', 5],
    ['upstream: {maxQueue: 0, retryPercent: 0, queueTimeout: 0s}', 'upstream.maxQueue', 0],
  ])('%j is read', async (yaml, path, value) => {
    expect(memberAt(load(yaml).config, path)).toEqual(value);
  });

  test.each([
    ['upstream: {maxResponse: 8mb}', `upstream.maxResponse (my.yaml): given "8mb"; allowed: ${size('1kB', '1GB')}`],
    ['upstream: {maxResponse: null}', `upstream.maxResponse (my.yaml): given null; allowed: ${size('1kB', '1GB')}`],
    ['cache: {memory: 2TB}', `cache.memory (my.yaml): given "2TB"; allowed: ${size('0GB', '1000GB')}`],
    [
      'cache: {classes: {rubric: {outdatedLimit: 0.02}}}',
      'cache.classes.rubric.outdatedLimit (my.yaml): given 0.02; allowed: a percentage like 2% or 0.5%, from 0% to 100%',
    ],
    [
      'cache: {classes: {rubric: {outdatedLimit: 101%}}}',
      'cache.classes.rubric.outdatedLimit (my.yaml): given "101%"; allowed: a percentage like 2% or 0.5%, from 0% to 100%',
    ],
    [
      'sever: {}',
      'sever (my.yaml): there is no such setting; did you mean "server"?; allowed: server, admin, redis, upstream, keys, rateLimit, api, changes, cache, objectives, log',
    ],
    [
      'cache: {classes: {list: {freshMs: 1s}}}',
      'cache.classes.list.freshMs (my.yaml): there is no such setting; did you mean "fresh"?; allowed: fresh, stale, error, outdatedLimit',
    ],
    [
      'cache: {redisBytes: 512MB}',
      'cache.redisBytes (my.yaml): there is no such setting; did you mean "redis"?; allowed: memory, redis, refreshRate, encryptionKeys, classes',
    ],
    [
      'telemetry: {}\n',
      'telemetry (my.yaml): there is no such setting; allowed: server, admin, redis, upstream, keys, rateLimit, api, changes, cache, objectives, log',
    ],
    [
      '__proto__: {a: 1}',
      '__proto__ (my.yaml): there is no such setting; allowed: server, admin, redis, upstream, keys, rateLimit, api, changes, cache, objectives, log',
    ],
    [
      'cache: 3',
      'cache (my.yaml): it is a section, and one value was given; allowed: a section with any of memory, redis, refreshRate, encryptionKeys, classes',
    ],
    ['a: b: c', 'my.yaml: it cannot be read as YAML: block as implicit key at line 1, column 4;'],
    ['server:\n  port: 1\n  port: 2', 'my.yaml: it cannot be read as YAML: duplicate key at line 3, column 3;'],
    ['--- {}\n--- {}', 'my.yaml: it cannot be read as YAML: multiple docs at line 2, column 1;'],
    [
      'upstream: {token: *hunter2}',
      'my.yaml: it cannot be read as YAML: an alias has no anchor before it, or there are too many;',
    ],
    ['- 1', 'my.yaml: it does not hold names with values;'],
  ])('%j is refused', async (yaml, fault) => {
    const form = ' allowed: one YAML 1.2 document of settings; config/default.yaml shows its form';
    expect(fileFaults(yaml)).toEqual([fault.endsWith(';') ? fault + form : fault]);
  });

  test('that cannot be read is blamed on CONFIG_FILE', () => {
    expect(faultsOf({ CONFIG_FILE: '/none.yaml' })).toEqual([
      'CONFIG_FILE: given "/none.yaml"; it cannot be read: there is no such file; allowed: a YAML file that can be read; config/default.yaml shows its form',
    ]);
  });

  test('all faults of file and environment are listed at once', async () => {
    const env = {
      PORT: '65536',
      LOG_LEVEL: 'verbose',
      WORKERS: '2',
    };
    const faults = fileFaults('sever: {}\nserver: {prot: 1, drainDelay: 5}\n', env);
    expect(faults.map((fault) => fault.split(':')[0])).toEqual([
      'sever (my.yaml)',
      'server.prot (my.yaml)',
      'PORT',
      'server.drainDelay (my.yaml)',
      'LOG_LEVEL',
      'WORKERS',
    ]);
  });
});

describe('values that are each allowed, and not together', () => {
  const exposed = 'other machines could reach the admin listener, and there is no admin token';
  test.each<[Env, string | null]>([
    [{ ADMIN_HOST: '0.0.0.0' }, `ADMIN_HOST: given "0.0.0.0"; ${exposed};`],
    [{ ADMIN_HOST: 'gateway.internal' }, `ADMIN_HOST: given "gateway.internal"; ${exposed};`],
    [{ ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN: 't' }, null],
    [{ ADMIN_HOST: '::1' }, null],
    [{ ADMIN_HOST: '0:0:0:0:0:0:0:1' }, null],
    [{ ADMIN_HOST: 'LOCALHOST' }, null],
    [{ WORKERS: '2' }, 'WORKERS: given "2"; several processes share keys and quotas through Redis, and there is none;'],
    [{ WORKERS: '2', REDIS_URL: 'redis+sentinel://:pw@[fd00::1]:26379,b/main' }, null],
    [
      { REDIS_CACHE_URL: 'redis://h' },
      'REDIS_CACHE_URL: given (a secret, not shown); it is the second Redis, and there is no first;',
    ],
    [{ PORT: '8081' }, 'ADMIN_PORT: by default 8081; the public API listens on the same address and port;'],
    [{ PORT: '9000', ADMIN_PORT: '9000', HOST: '::' }, 'ADMIN_PORT: given "9000"; the public API listens on the same'],
    [{ PORT: '9000', ADMIN_PORT: '9000', HOST: '192.0.2.1' }, null],
    [{ PORT: '0', ADMIN_PORT: '0' }, null],
  ])('%j', (env, fault) => {
    const [found = null, ...others] = faultsOf(env);
    expect([found?.slice(0, fault?.length) ?? null, others]).toEqual([fault, []]);
  });

  test('nothing is said of how a value goes with another that is faulty itself', () => {
    const env = { ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN_FILE: '/none', WORKERS: '2', REDIS_URL: 'x' };
    expect(faultsOf(env).map((fault) => fault.split(':')[0])).toEqual(['ADMIN_TOKEN_FILE', 'REDIS_URL']);
  });

  test('an allowed but unlikely value causes a warning', () => {
    expect(loadConfig({ env: {} }).warnings).toEqual([]);
    expect(loadConfig({ env: { CACHE_RUBRIC_ERROR: '1m', UPSTREAM_TOKEN: 't' } }).warnings).toEqual([
      'cache.classes.rubric: "error" is shorter than "stale" and so changes nothing: a copy within "stale" is served whether the store fails or not.',
    ]);
    expect(loadConfig({ env: { UPSTREAM_URL: 'http://store' } }).warnings).toEqual([
      'UPSTREAM_URL is set and UPSTREAM_TOKEN is not: requests to the store carry no Authorization.',
    ]);
  });

  test.each([
    ['0.0.0.0', 'alice=correct-horse,bob=0123456789abcdef,eve=x', 'alice, eve'],
    ['admin.internal', '0123456789abcde', 'admin'],
    ['0.0.0.0', '0123456789abcdef', null],
    ['127.0.0.1', 'x', null],
    ['::1', 'x', null],
  ])('an admin token that can be guessed is a warning if other machines reach the listener: %s %s', (...row) => {
    const [ADMIN_HOST, ADMIN_TOKEN, weak] = row;
    const warning = `ADMIN_TOKEN: other machines can reach the admin listener, and tokens of fewer than 16 characters can be guessed: ${weak}. Make new ones: openssl rand -base64 24`;
    expect(loadConfig({ env: { ADMIN_HOST, ADMIN_TOKEN } }).warnings).toEqual(weak === null ? [] : [warning]);
  });

  test.each([
    ['c2VjcmV0Cg==', [['admin', 'admin', 'c2VjcmV0Cg==']]],
    ['a:b', [['admin', 'admin', 'a:b']]],
    ['a:b==', [['admin', 'admin', 'a:b==']]],
    ['ann=a:b=c', [['ann', 'admin', 'a:b=c']]],
    [
      'ann:keys=a:b=c,ben:operator=x',
      [
        ['ann', 'keys', 'a:b=c'],
        ['ben', 'operator', 'x'],
      ],
    ],
  ])('an admin token may hold ":" and "=": %s', (ADMIN_TOKEN, expected) => {
    const { tokens } = loadConfig({ env: { ADMIN_TOKEN } }).config.admin;
    expect(tokens.map(({ name, role, token }) => [name, role, token])).toEqual(expected);
  });

  test.each<[Env, boolean]>([
    [{ REDIS_URL: 'redis://10.0.0.7' }, true],
    [{ REDIS_URL: 'redis://redis' }, true],
    [{ REDIS_URL: 'redis+cluster://127.0.0.1,redis' }, true],
    [{ REDIS_URL: 'redis://redis', REDIS_CACHE_URL: 'redis://localhost' }, false],
    [{ REDIS_URL: 'redis://[::1]' }, false],
    [{ REDIS_URL: 'rediss://redis' }, false],
    [{ REDIS_URL: 'redis://redis', CACHE_ENCRYPTION_KEYS: Buffer.alloc(32).toString('base64') }, false],
  ])('with %j cached records cross a network unencrypted: %s', (env, isExposed) => {
    const warning =
      'REDIS_URL: cached records cross the network unencrypted. Set CACHE_ENCRYPTION_KEYS (make one: openssl rand -base64 32), or use TLS (rediss://).';
    expect(loadConfig({ env }).warnings).toEqual(isExposed ? [warning] : []);
  });

  test.each<[Env, readonly string[]]>([
    [
      { UPSTREAM_URl: 'http://store' },
      ['UPSTREAM_URl is set and is no setting of evalgate: did you mean UPSTREAM_URL?'],
    ],
    [
      { UPSTREAM_TIMOUT: '5s', UPSTREAM_URL: 'http://store', UPSTREAM_TOKEN: 't' },
      ['UPSTREAM_TIMOUT is set and is no setting of evalgate: did you mean UPSTREAM_TIMEOUT?'],
    ],
    [
      { REDIS_PASSWORD: 'x', UPSTREAM_URL: 'http://store', UPSTREAM_TOKEN: 't' },
      [
        'REDIS_PASSWORD is set and is no setting of evalgate. Those that begin with REDIS_ are REDIS_URL, REDIS_URL_FILE, REDIS_CACHE_URL, REDIS_CACHE_URL_FILE.',
      ],
    ],
    [{ REDIS_URL: 'redis://127.0.0.1' }, []],
    [{ Port: '1' }, ['Port is set and is no setting of evalgate: did you mean PORT?']],
    // Common names that are near ours, and what Kubernetes sets for a service that is called redis.
    [{ PATH: '/bin', HOME: '/', HOSTNAME: 'h', USER: 'u', WORKER: '1' }, []],
    [{ REDIS_PORT: 'tcp://10.0.0.1:6379', REDIS_SERVICE_HOST: '10.0.0.1', REDIS_PORT_6379_TCP_ADDR: '10.0.0.1' }, []],
    [{ REDIS_PASSWORD: '' }, []],
  ])('of the variables %j those that are nearly ours are named', (env, warnings) => {
    expect(loadConfig({ env }).warnings).toEqual(warnings);
  });
});

const deprecations = (...texts: readonly string[]) => JSON.stringify({ api: { deprecations: texts } });

test.each(['\n', '\r\n'])('a line break (%j) at the end of a variable is dropped', (end) => {
  const { config } = loadConfig({ env: { REDIS_URL: `redis://127.0.0.1:6379${end}`, PORT: `81${end}`, HOST: end } });
  expect([config.redis.url, config.server.port, config.server.host]).toEqual([
    'redis://127.0.0.1:6379',
    81,
    '127.0.0.1',
  ]);
});

test('a removed setting is refused with what to do, unless it has the value that changes nothing', () => {
  const fault =
    'given "upstream"; this setting was removed; allowed: nothing; import the keys of the store with `evalgate keys import` (docs/migrating.md)';
  expect(faultsOf({ KEYS_SOURCE: 'upstream' })).toEqual([`KEYS_SOURCE: ${fault}`]);
  expect(fileFaults('keys: {source: upstream}')).toEqual([`keys.source (my.yaml): ${fault}`]);
  expect(fileFaults('keys: {source: registry, grace: 5m}', { KEYS_SOURCE: 'registry' })).toEqual([]);
});

describe('deprecations', () => {
  const date = 'is no date like 2027-01-01 or 2027-01-01T12:00:00Z';

  test('are surfaces and operations, each with a date, and an end and a link if they are given', async () => {
    const { config } = load(
      deprecations(
        'v1 from 2027-01-01 until 2028-02-29 see https://docs.example/v1?a=b,c#d',
        'getCallScorecard from 2026-06-30T12:00:00Z',
      ),
    );
    expect(config.api.deprecations).toEqual([
      {
        target: 'v1',
        fromMs: Date.UTC(2027, 0, 1),
        untilMs: Date.UTC(2028, 1, 29),
        link: 'https://docs.example/v1?a=b,c#d',
      },
      { target: 'getCallScorecard', fromMs: Date.UTC(2026, 5, 30, 12), untilMs: null, link: null },
    ]);
  });

  test.each([
    ['v1 until 2027-01-01', '"v1 until 2027-01-01" is none'],
    [
      'v3 from 2027-01-01',
      'there is no v3: it can be v1, v2, listReports, getReport, getReportScorecard, getReportDealInsights, getReportTranscript, getWorkspaceKey, listCalls, getCall, getCallTranscript, getCallScorecard, getScorecardRubric, getCallsKey, listChanges',
    ],
    ['v1 from 2027-02-30', `"2027-02-30" ${date}`],
    ['v1 from 2027-01-01T00:00:00+02:00', `"2027-01-01T00:00:00+02:00" ${date}`],
    ['v1 from 2027-01-02 until 2027-01-01', 'v1 would end before it is deprecated'],
    ['v1 from 2027-01-01 see javascript:alert(1)', '"javascript:alert(1)" is no http or https address'],
    [
      'v1 from 2027-01-01 see https://me:secret@docs.example',
      'the address after "see" is shown to everybody and may hold no user name and password',
    ],
  ])('%s is refused', async (text, problem) => {
    const [fault, ...others] = fileFaults(deprecations(text));
    expect(others).toEqual([]);
    expect(fault).toContain(`; ${problem}; allowed: a list of texts like "v1 from`);
  });

  test('all that are refused are named', () => {
    const texts = ['v3 from 2027-01-01', 'v1 until 2027-01-01', 'v1 from 2027-02-30'];
    expect(fileFaults(deprecations('v2 from 2027-01-01', ...texts))).toEqual([
      expect.stringMatching(/; there is no v3: .*; "v1 until 2027-01-01" is none; "2027-02-30" is no date /),
    ]);
    expect(faultsOf({ TRUSTED_PROXIES: '10.0.0.0/99,10.0.0.0/8,foo' })).toEqual([
      expect.stringContaining('; "10.0.0.0/99" is none; "foo" is none; allowed: '),
    ]);
    expect(faultsOf({ ADMIN_TOKEN: 'a=1,b,c:d=2,a=3' })).toEqual([
      expect.stringMatching(
        /; part 2 \(between commas\) is not .*; part 3 has no known role .*; the name of part 4 is/,
      ),
    ]);
    expect(faultsOf({ CACHE_ENCRYPTION_KEYS: '!,AAAA' })).toEqual([
      expect.stringContaining('; key 1 (between commas) is not in base64; key 2 has 3 bytes instead of 32; '),
    ]);
  });

  test('two for one target are refused', async () => {
    const faults = fileFaults(deprecations('v1 from 2027-01-01', 'v1 from 2028-01-01'));
    expect(faults).toEqual([expect.stringContaining('; more than once: v1; ')]);
  });
});
