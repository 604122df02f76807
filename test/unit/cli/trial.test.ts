import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Live } from '../../../src/cli/cache/live.ts';
import { trialCommand } from '../../../src/cli/cache/trial.ts';
import { exitCodeOf } from '../../../src/cli/errors.ts';
import type { Terminal } from '../../../src/cli/terminal.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { evalgate, type FakeServer, type Outcome, type Received, type Reply, serve } from './support.ts';
import { CONTROL_ARM, TRIAL_ARM } from '../../support/trial-arms.ts';

const STARTED_MS = Date.parse('2026-01-15T12:00:00.000Z');
const TRIED_ARM = { ...TRIAL_ARM, fresh: '60s' };
const NO_READS = { reads: 0, hits: 0, hitRatio: null, storeCalls: 0, storeFailures: 0 };
const IDLE = { ...NO_READS, storeCallsPerRead: null, storeFailureRatio: null };
const RUNNING = {
  id: 't1',
  class: 'list',
  state: 'running',
  reason: null,
  fresh: '60s',
  freshMs: 60_000,
  share: 0.1,
  startedAt: '2026-01-15T12:00:00.000Z',
  startedBy: 'al\u001Bice',
  until: '2026-01-15T13:00:00.000Z',
  endedAt: null,
  limits: { maxStoreLoad: 1.5, maxErrors: 0.05 },
  arms: { trial: TRIED_ARM, control: CONTROL_ARM },
  predicted: {
    trial: { hitRatio: 0.941, storeCallsPerRead: 0.059 },
    control: { hitRatio: 0.875, storeCallsPerRead: 0.1251 },
  },
};
const BACK = {
  ...RUNNING,
  class: 'rubric',
  state: 'rolled-back',
  reason: 'Store load: 2.1 times the control’s,\u001B more than 1.5.',
  endedAt: '2026-01-15T12:17:30.000Z',
};
const ENDED = { ...RUNNING, state: 'ended', endedAt: '2026-01-15T13:00:00.000Z' };
const FIGURES = [
  'ARM      FRESH  READS  HIT RATIO  PREDICTED  STORE CALLS/READ  PREDICTED  STORE CALLS  FAILED',
  'trial    60s    1234   93.8 %     94.1 %     0.062             0.059      77           0 (0.0 %)',
  'control  30s    11234  88.0 %     87.5 %     0.120             0.125      1348         3 (0.2 %)',
];

let admin: FakeServer;
let reply: (request: Received) => Reply;
let clock: ManualClock;
beforeEach(async () => {
  clock = new ManualClock(STARTED_MS + 1_070_400);
  admin = await serve((request) => reply(request));
});
afterEach(() => admin.close());

/** The command in this process, at a time of the test's; `--admin` as the environment has it. */
async function trial(args: readonly string[], isScreen = false): Promise<Outcome> {
  const said = { stdout: '', stderr: '' };
  const terminal: Terminal = {
    env: { ADMIN_PORT: new URL(admin.url).port },
    out: (text) => void (said.stdout += text),
    err: (text) => void (said.stderr += text),
    readInput: async () => '',
    confirm: async () => null,
  };
  const live: Live = { clock, isScreen, pause: async (durationMs) => clock.advance(durationMs) };
  try {
    await trialCommand(terminal, live).parseAsync(args, { from: 'user' });
    return { code: 0, ...said };
  } catch (error) {
    const message = error instanceof Error ? `${error.message}\n` : '';
    return { ...said, code: exitCodeOf(error), stderr: said.stderr + message };
  }
}

const shown = ({ stdout }: Outcome): readonly string[] => stdout.trimEnd().split('\n');

describe('showing', () => {
  test.each([[['show', 'list']], [['list']]])('%j has what was measured beside what was predicted', async (args) => {
    reply = () => [200, RUNNING];
    const outcome = await trial(args);
    expect([outcome.code, outcome.stderr, shown(outcome)]).toEqual([
      0,
      '',
      [
        'list: fresh 60s for 10% of the keys, 42m 10s left, until 2026-01-15T13:00:00.000Z.',
        'Started at 2026-01-15T12:00:00.000Z by al\uFFFDice.',
        "Goes back by itself when its store calls per read are clearly above 1.5 times control's, or 5% more of them fail than of control's.",
        ...FIGURES,
        'To let it rule for all keys: evalgate cache trial adopt list',
        'To go back now: evalgate cache trial stop list',
      ],
    ]);
    expect(admin.received).toMatchObject([{ method: 'GET', path: '/api/cache/trials/list', body: undefined }]);
  });

  test('without reads, and before there are predictions, there is a dash and no number', async () => {
    const arms = { trial: { ...TRIED_ARM, ...IDLE }, control: { ...CONTROL_ARM, ...IDLE } };
    reply = () => [200, { ...RUNNING, arms, predicted: { trial: null, control: null } }];
    expect(shown(await trial(['list'])).slice(3, 6)).toEqual([
      'ARM      FRESH  READS  HIT RATIO  PREDICTED  STORE CALLS/READ  PREDICTED  STORE CALLS  FAILED',
      'trial    60s    0      -          -          -                 -          0            0',
      'control  30s    0      -          -          -                 -          0            0',
    ]);
  });

  test('while it can not be judged yet it tells why', async () => {
    reply = () => [200, { ...RUNNING, reason: "Not judged yet: none of the trial's keys was read yet." }];
    expect(shown(await trial(['list']))[1]).toBe("Not judged yet: none of the trial's keys was read yet.");
  });

  test('a shorter time may cost what is predicted for it', async () => {
    const arms = { trial: { ...TRIED_ARM, fresh: '29s', freshMs: 29_000 }, control: CONTROL_ARM };
    reply = () => [200, { ...RUNNING, fresh: '29s', freshMs: 29_000, arms }];
    expect(shown(await trial(['list']))[2]).toBe(
      "Goes back by itself when its store calls per read are clearly above 1.5 times what is predicted, or 5% more of them fail than of control's.",
    );
  });

  test('calls that are few are more than none', async () => {
    const few = { ...TRIED_ARM, storeCallsPerRead: 0.0009 };
    reply = () => [200, { ...RUNNING, share: 0.025, arms: { trial: few, control: CONTROL_ARM } }];
    const lines = shown(await trial(['list']));
    expect([lines[0]?.slice(0, 37), lines[4]]).toEqual([
      'list: fresh 60s for 2.5% of the keys,',
      'trial    60s    1234   93.8 %     94.1 %     <0.001            0.059      77           0 (0.0 %)',
    ]);
  });

  test.each([
    [{ until: '2026-01-15T12:17:50.000Z' }, 'list: fresh 60s for 10% of the keys, about to end, until '],
    [ENDED, 'list: fresh 60s for 10% of the keys ended at 2026-01-15T13:00:00.000Z.'],
    [{ ...ENDED, state: 'stopped' }, 'list: fresh 60s for 10% of the keys was stopped at 2026-01-15T13:00:00.000Z.'],
    [BACK, 'rubric: fresh 60s for 10% of the keys was rolled back at 2026-01-15T12:17:30.000Z.'],
    [{ ...ENDED, state: 'adopted' }, 'list: fresh 60s for 10% of the keys was adopted for all keys at 2026-01-15T13:'],
  ])('the first line of %j tells how it stands', async (change, first) => {
    reply = () => [200, { ...RUNNING, ...change }];
    expect(shown(await trial(['list']))[0]).toContain(first);
  });

  test('of one that was rolled back it tells why, and offers nothing', async () => {
    reply = () => [200, BACK];
    expect(shown(await trial(['rubric'])).slice(1)).toEqual([
      'Why: Store load: 2.1 times the control’s,\uFFFD more than 1.5.',
      'Started at 2026-01-15T12:00:00.000Z by al\uFFFDice.',
      ...FIGURES,
    ]);
  });

  test('one that has ended by its time may be adopted, through the listener that was named', async () => {
    reply = () => [200, ENDED];
    expect(shown(await trial(['show', 'list', '--admin', admin.url])).at(-1)).toBe(
      `To let it rule for all keys: evalgate cache trial adopt list --admin ${admin.url}`,
    );
  });

  test('all: those that run in full, and a line each for the others', async () => {
    reply = () => [200, { trials: [RUNNING, BACK, ENDED] }];
    const lines = shown(await trial([]));
    expect([lines[0], lines.slice(8)]).toEqual([
      'list: fresh 60s for 10% of the keys, 42m 10s left, until 2026-01-15T13:00:00.000Z.',
      [
        '',
        'Over, newest first',
        'CLASS   FRESH  INSTEAD OF  SHARE  STATE        ENDED AT                  HIT RATIO  CONTROL  WHY',
        'rubric  60s    30s         10%    rolled-back  2026-01-15T12:17:30.000Z  93.8 %     88.0 %   Store load: 2.1 times the control’s,\uFFFD more than 1.5.',
        'list    60s    30s         10%    ended        2026-01-15T13:00:00.000Z  93.8 %     88.0 %   -',
      ],
    ]);
    expect(admin.received).toMatchObject([{ method: 'GET', path: '/api/cache/trials' }]);
  });

  test('where none runs, or there was none, it says so', async () => {
    reply = () => [200, { trials: [BACK] }];
    expect(shown(await trial([])).slice(0, 3)).toEqual(['No trial runs.', '', 'Over, newest first']);
    reply = () => [200, { trials: [] }];
    expect((await trial([])).stdout).toBe(
      'There was no trial yet. To begin one: evalgate cache trial start list --fresh 60s --share 10% --for 1h\n',
    );
  });

  test('--json gives what the listener gave', async () => {
    reply = ({ path }) => [200, path === '/api/cache/trials' ? { trials: [RUNNING, BACK] } : RUNNING];
    expect(JSON.parse((await trial(['--json'])).stdout)).toEqual({ trials: [RUNNING, BACK] });
    expect(JSON.parse((await trial(['show', 'list', '--json'])).stdout)).toEqual(RUNNING);
  });
});

/** What each look finds, one after the other; the last one again and again. */
function looks(...replies: readonly Reply[]): void {
  let next = 0;
  reply = () => replies[Math.min(next++, replies.length - 1)] ?? [500, {}];
}
const read = (reads: number) => ({ ...RUNNING, arms: { trial: { ...TRIED_ARM, reads }, control: CONTROL_ARM } });
const CLEAR = '\u001B[H\u001B[2J';

describe('watching', () => {
  test('shows the figures of each second over the last ones, until the trial is over', async () => {
    looks([200, read(1)], [200, read(2)], [200, { ...BACK, class: 'list' }]);
    const outcome = await trial(['show', 'list', '--watch'], true);
    const [before, ...screens] = outcome.stdout.split(CLEAR);
    expect([outcome.code, before, screens.map((screen) => screen.split('\n')[0])]).toEqual([
      0,
      '',
      [
        'list: fresh 60s for 10% of the keys, 42m 10s left, until 2026-01-15T13:00:00.000Z.',
        'list: fresh 60s for 10% of the keys, 42m 9s left, until 2026-01-15T13:00:00.000Z.',
        'list: fresh 60s for 10% of the keys was rolled back at 2026-01-15T12:17:30.000Z.',
      ],
    ]);
    expect(screens.map((screen) => /^trial +60s +(\d+)/m.exec(screen)?.[1])).toEqual(['1', '2', '1234']);
    expect(admin.received).toHaveLength(3);
  });

  test('where there is no screen the figures follow each other, with nothing in them that moves a cursor', async () => {
    looks([200, { trials: [RUNNING] }], [200, { trials: [RUNNING, BACK] }], [200, { trials: [BACK] }]);
    const { stdout } = await trial(['--watch']);
    expect(stdout).not.toContain('\u001B');
    expect(stdout.match(/^(?:list: .* left|No trial runs\.)/gm)).toEqual([
      'list: fresh 60s for 10% of the keys, 42m 10s left',
      'list: fresh 60s for 10% of the keys, 42m 9s left',
      'No trial runs.',
    ]);
    expect(stdout).toContain('stop list\n\nlist: ');
  });

  test('what is over already is shown once', async () => {
    looks([200, ENDED]);
    expect((await trial(['show', 'list', '--watch'])).code).toBe(0);
    expect(admin.received).toHaveLength(1);
  });

  test('a gateway that fails in between is told, with the last known figures, and asked again', async () => {
    looks([200, RUNNING], [503, { error: { message: 'Not now.' } }], [200, ENDED]);
    const { code, stdout } = await trial(['show', 'list', '--watch'], true);
    const [, first = '', second = ''] = stdout.split(CLEAR);
    expect([code, second]).toEqual([0, `${first}These are the last known figures. Not now.\n`]);
  });

  const NONE = 'There was no trial of this class yet.';
  const NONE_TEXT = `${NONE}\nTo begin one: evalgate cache trial start list --fresh 60s --share 10% --for 1h\n`;

  test.each([
    [404, `${NONE} GET /api/cache/trials lists all; POST /api/cache/trials begins one of list.`, NONE_TEXT],
    [500, 'Something failed.', 'Something failed.\n'],
  ])('a first look that is answered with %i ends it', async (status, message, stderr) => {
    looks([status, { error: { message } }]);
    expect(await trial(['show', 'list', '--watch'])).toEqual({ code: 1, stdout: '', stderr });
  });

  test('what is refused later on, too', async () => {
    looks([200, RUNNING], [404, { error: { message: NONE } }]);
    expect(await trial(['show', 'list', '--watch'])).toMatchObject({ code: 1, stderr: NONE_TEXT });
  });
});

describe('changing', () => {
  const START = ['start', 'list', '--fresh', '60s', '--share', '10%', '--for', '1h'];

  test('start sends what was given, and no limits that were not', async () => {
    reply = () => [201, RUNNING];
    const outcome = await trial(START);
    expect([outcome.code, shown(outcome)[0]]).toEqual([
      0,
      'list: fresh 60s for 10% of the keys, 42m 10s left, until 2026-01-15T13:00:00.000Z.',
    ]);
    expect(admin.received).toMatchObject([{ method: 'POST', path: '/api/cache/trials' }]);
    expect(admin.received[0]?.body).toEqual({ class: 'list', fresh: '1m', share: 0.1, for: '1h' });
  });

  test.each([
    [['0.1', '1.1', '100%'], { share: 0.1, maxStoreLoad: 1.1, maxErrors: 1 }],
    [['50%', '2.25', '1%'], { share: 0.5, maxStoreLoad: 2.25, maxErrors: 0.01 }],
    [['7%', '100', '0.025'], { share: 0.07, maxStoreLoad: 100, maxErrors: 0.025 }],
  ])('a share and limits of %j', async ([share = '', load = '', errors = ''], sent) => {
    reply = () => [201, RUNNING];
    const limits = ['--max-store-load', load, '--max-errors', errors, '--json'];
    const { stdout } = await trial(['start', 'list', '--fresh', '0s', '--share', share, '--for', '7d', ...limits]);
    expect(JSON.parse(stdout)).toEqual(RUNNING);
    expect(admin.received[0]?.body).toEqual({ class: 'list', fresh: '0s', for: '7d', ...sent });
  });

  test('stop and adopt name the class alone', async () => {
    reply = ({ method }) => [200, { ...ENDED, state: method === 'DELETE' ? 'stopped' : 'adopted' }];
    expect(shown(await trial(['stop', 'list']))[0]).toContain('was stopped at');
    expect(shown(await trial(['adopt', 'list']))[0]).toContain('was adopted for all keys at');
    expect(admin.received.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['DELETE', '/api/cache/trials/list', undefined],
      ['POST', '/api/cache/trials/list/adopt', {}],
    ]);
  });

  test.each([
    [['stop', 'list'], 'To see all that there were: evalgate cache trial'],
    [['adopt', 'list'], 'To see all that there were: evalgate cache trial'],
    [START, 'To stop it: evalgate cache trial stop list'],
  ])('what is refused because of how the trials stand is told with commands: %j', async (args, advice) => {
    const endpoints = 'GET /api/cache/trials lists all; POST /api/cache/trials begins one of list.';
    reply = () => [409, { error: { message: `No: this; and that. PUT /api/cache/ttl/list sets it. ${endpoints}` } }];
    expect(await trial(args)).toEqual({ code: 1, stdout: '', stderr: `No: this; and that.\n${advice}\n` });
  });

  test('any other refusal is told as it is', async () => {
    const message = 'The body has 1 fault; nothing was changed.\n- fresh: given "30s", which is in force';
    reply = () => [400, { error: { message } }];
    expect(await trial(START)).toEqual({ code: 1, stdout: '', stderr: `${message}\n` });
  });

  test.each([
    [['start', 'list', '--share', '10%', '--for', '1h'], "required option '--fresh <duration>' not specified"],
    [[...START, '--share', '51%'], 'Allowed: a share above 0 and up to 50%, such as 10% or 0.1.'],
    [[...START, '--share', '0%'], 'Allowed: a share above 0'],
    [[...START, '--share', '10 %'], 'Allowed: a share above 0'],
    [[...START, '--share', '10'], 'Allowed: a share above 0'],
    [[...START, '--for', '59s'], 'from 1m to 7d.'],
    [[...START, '--for', '8d'], 'from 1m to 7d.'],
    [[...START, '--fresh', '366d'], 'from 0s to 365d.'],
    [[...START, '--max-store-load', '1'], 'Allowed: a number from 1.1 to 100, such as 1.5.'],
    [[...START, '--max-store-load', '101'], 'Allowed: a number from 1.1 to 100'],
    [[...START, '--max-errors', '0.9%'], 'Allowed: a share from 1% to 100%, such as 10% or 0.1.'],
    [[...START, '--max-errors', '101%'], 'Allowed: a share from 1% to 100%'],
    [['start', 'lists', ...START.slice(2)], 'Allowed choices are list, evaluation,'],
    [['lists'], 'Allowed choices are list, evaluation,'],
    [['stop'], "missing required argument 'class'"],
    [['show', '--watch', '--json'], 'Give --watch or --json, not both.'],
  ])('a wrong call ends with 2, says what is allowed, and sends nothing: %j', async (args, message) => {
    const { code, stdout, stderr } = await trial(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect(admin.received).toEqual([]);
  });
});

test.each([
  ['', false],
  ['show', true],
  ['start', true],
  ['stop', true],
  ['adopt', true],
])('cache trial %s has --help with examples, and --json where it answers', async (name, isAnswering) => {
  const { code, stdout } = await evalgate(['cache', 'trial', ...name.split(' ').filter(Boolean), '--help']);
  expect([code, /^ {2}--json /m.test(stdout)]).toEqual([0, isAnswering]);
  expect(stdout).toContain('\nExamples:\n  $ evalgate cache trial');
});
