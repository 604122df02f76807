import { afterEach, beforeEach, expect, test } from 'vitest';
import { evalgate, type FakeServer, serve } from './support.ts';

function point(freshMs: number, hitRatio: number, more: object = {}): object {
  const rest = { upstreamRps: 10 * (1 - hitRatio), ageP90Ms: freshMs * 0.9, outdatedRatio: null, extrapolated: false };
  return { freshMs, hitRatio, ...rest, ...more };
}

const NOW = point(30_000, 0.5, { outdatedRatio: 0.004 });
const LIST = {
  class: 'list',
  reads: 12_345,
  since: '2026-01-15T12:00:00.000Z',
  outdatedLimit: 0.02,
  current: NOW,
  measured: { hitRatio: 0.498, upstreamRps: 5.04 },
  curve: [
    point(500, 0.02, { upstreamRps: 123.4, ageP90Ms: 412.3 }),
    NOW,
    point(90_000, 0.9375, { outdatedRatio: 0.0199 }),
    point(86_400_000, 1, { upstreamRps: 0.001, extrapolated: true, outdatedRatio: 0.61 }),
  ],
  recommendation: { freshMs: 90_000, why: 'Longer times hardly spare the store any more.' },
};
const NOTHING = { reads: 0, since: null, outdatedLimit: 0.02, current: null, measured: null, curve: [] };
const IDLE = { freshMs: null, why: 'No reads were seen yet.' };
const ADVICE = {
  at: '2026-01-15T13:00:00.000Z',
  processes: 4,
  classes: [
    LIST,
    { class: 'rubric', ...NOTHING, recommendation: IDLE },
    { class: 'notFound', ...NOTHING, recommendation: IDLE },
  ],
};
const MEMBER = { id: 'a1', host: 'gw-1', pid: 7, version: '1.2.3', startedAt: '2026-01-15T12:00:00.000Z' };
const FLEET = {
  members: [
    { ...MEMBER, status: 'ready', self: true },
    { ...MEMBER, id: 'b2', host: 'gw-\u001B2', status: 'draining', self: false },
  ],
};

let admin: FakeServer;
let answers: Readonly<Record<string, unknown>>;
beforeEach(async () => {
  answers = { '/api/cache/advice': ADVICE, '/api/fleet': FLEET };
  admin = await serve(({ path }) => [200, answers[path]]);
});
afterEach(() => admin.close());

const run = (...args: readonly string[]) => evalgate(args, { env: { ADMIN_PORT: new URL(admin.url).port } });

test('advice is a chart a class, why, and the line that applies it', async () => {
  const { code, stdout, stderr } = await run('cache', 'advice');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout.trimEnd().split('\n')).toEqual([
    'list: 12345 reads of 4 processes since 2026-01-15T12:00:00.000Z',
    'Measured with the times that were in force: hit ratio 49.8 %, 5.04 store calls/s',
    'TIME   HIT RATIO                          STORE CALLS/S  AGE P90  OUTDATED',
    '500ms  ▌                         2.0 %    123            412ms    -',
    '30s    ████████████              50.0 %   5.00           27s      0.4 %     now',
    '90s    ██████████████████████▌   93.8 %   0.63           1.4m     2.0 %     recommended',
    '1d     ████████████████████████  100.0 %  <0.01          21.6h    61.0 %    extrapolated',
    'Longer times hardly spare the store any more.',
    'To apply it: evalgate cache ttl set list --fresh 90s',
    '',
    'Nothing was read yet of: rubric, notFound.',
  ]);
});

test('advice of one class, through the listener that was named, in the words of the API', async () => {
  const args = ['cache', 'advice', '--class', 'list', '--admin', admin.url];
  const shown = (await evalgate(args)).stdout;
  expect(shown).toContain(`\nTo apply it: evalgate cache ttl set list --fresh 90s --admin ${admin.url}\n`);
  expect(shown).not.toContain('rubric');
  const { stdout } = await evalgate([...args, '--json']);
  expect(JSON.parse(stdout)).toEqual({ ...ADVICE, classes: [LIST] });
});

test.each([
  [0.549, false],
  [0.451, false],
  [1, true],
  [0.44, true],
])(
  'a measured hit ratio of %f beside one of 0.5 that is worked out is told to be doubtful: %j',
  async (hitRatio, isTold) => {
    answers = { '/api/cache/advice': { ...ADVICE, classes: [{ ...LIST, measured: { ...LIST.measured, hitRatio } }] } };
    const shown = (await run('cache', 'advice')).stdout;
    const words = `For the time in force a hit ratio of 50.0 % is worked out, and ${(100 * hitRatio).toFixed(1)} % was measured: copies also come from elsewhere (pages of a list fill single calls), or a time or purge changed meanwhile. Go by the differences.\n`;
    expect(shown.includes(words)).toBe(isTold);
    expect(shown.includes('Go by the differences.')).toBe(isTold);
  },
);

test('what is in force already needs no line to apply it', async () => {
  const classes = [{ ...LIST, recommendation: { freshMs: 30_000, why: 'The time in force is as good as any.' } }];
  answers = { '/api/cache/advice': { ...ADVICE, classes } };
  const { stdout } = await run('cache', 'advice');
  expect(stdout).toContain('  now, recommended\n');
  expect(stdout.trimEnd().split('\n').at(-1)).toBe('The time in force is as good as any.');
});

test('fleet is a line a process', async () => {
  const { code, stdout } = await run('fleet');
  expect([code, stdout.trimEnd().split('\n')]).toEqual([
    0,
    [
      'HOST   PID  VERSION  STATUS    STARTED AT                ID',
      'gw-1   7    1.2.3    ready     2026-01-15T12:00:00.000Z  a1  asked',
      'gw-\uFFFD2  7    1.2.3    draining  2026-01-15T12:00:00.000Z  b2',
    ],
  ]);
  expect(JSON.parse((await run('fleet', '--json')).stdout)).toEqual(FLEET);
});

test.each([[['cache', 'advice']], [['fleet']]])('%j has --help with examples, and --json', async (command) => {
  const { code, stdout } = await evalgate([...command, '--help']);
  expect([code, /^ {2}--json /m.test(stdout)]).toEqual([0, true]);
  expect(stdout).toContain('\nExamples:\n  $ ');
});
