/** The findings of `evalgate doctor` at a store: a sound one passes, and each way to break it is named. */
import { createServer } from 'node:https';
import { createServer as createPlainServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { NO_GATEWAY, runDoctor, startCliUntil } from '../support/cli.ts';
import { fileOf } from '../support/files.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { sendError, type StoreServer } from '../support/store-server.ts';
import { makeTlsFiles } from '../support/tls-files.ts';
import { listed, sendText, slowDown, soundStore } from './broken-store.ts';
import { type BrokenStore, IN_LISTS, IN_RECORDS, ON_THE_WAY } from './doctor-findings.ts';

let store: StoreServer;
beforeEach(async () => {
  store = await forTest(soundStore());
});

const isOfStore = (text: string): boolean => /^(?:\w+ )?(?:upstream|clock|contract)(?::|$)/.test(text);

async function doctor(
  args: readonly string[] = ['--workspace', WORKSPACE_A],
  env: Readonly<Record<string, string>> = {},
) {
  const of = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, ...env };
  const { ok, checks, lines } = await runDoctor(of, [...NO_GATEWAY, ...args]);
  return {
    ok,
    checks: checks.filter(({ name }) => isOfStore(name)),
    lines: lines
      .filter(isOfStore)
      .map((line) => line.replace(/\d+ ms/, 'N ms').replace(new URL(store.url).host, 'HOST')),
  };
}

const SOUND = [
  'ok upstream: the store answers, in N ms, and accepts the token',
  "ok clock: differs from the store's by less than 5 seconds",
  'ok upstream: without the token it refuses (status 401)',
  'ok contract: lists: 7 records are whole',
  'ok contract: lists: order, pages, totals, filters and the search are as described',
  'ok contract: evaluation: 5 records looked at, whole',
  'ok contract: transcript: 2 records looked at, whole (speaker_text, no format)',
  'ok contract: scorecard: 1 record looked at, whole',
  'ok contract: dealInsights: 1 record looked at, whole',
  'ok contract: rubric: 1 record looked at, whole',
  'ok contract: If-None-Match is answered with 304: list, evaluation, transcript, scorecard, dealInsights, rubric',
  'ok contract: an id that is not there is answered with 404 and a known code: evaluation, transcript, scorecard, dealInsights, rubric',
];

test('C7: a sound store passes, and only reads are sent to it', async () => {
  const { ok, lines } = await doctor(['--workspace', WORKSPACE_A.toUpperCase()]);
  expect([ok, lines]).toEqual([true, SOUND]);
  expect(new Set(store.requests.map(({ method }) => method))).toEqual(new Set(['GET']));
});

test('without --workspace there is a warning that lists and records were not checked', async () => {
  const { ok, checks, lines } = await doctor([]);
  expect([ok, lines]).toEqual([
    true,
    [
      ...SOUND.slice(0, 3),
      'warn contract: lists: only the form of an empty one was checked',
      'ok contract: If-None-Match is answered with 304: list',
      SOUND.at(-1),
    ],
  ]);
  expect(checks[3]?.advice).toContain('--workspace UUID');
});

test('a workspace without records is no proof', async () => {
  const { ok, lines } = await doctor(['--workspace', '33333333-3333-4333-8333-333333333333']);
  expect([ok, lines[3]]).toEqual([true, 'warn contract: lists: the workspace has no completed evaluations']);
});

const isOf = (text: string, finds: BrokenStore['finds']): boolean =>
  finds.some((find) => (typeof find === 'string' ? find === text : find.test(text)));

test.each([...IN_LISTS, ...IN_RECORDS, ...ON_THE_WAY])(
  'a broken store is found: $mutation',
  async ({ make, env, hasNoWorkspace, finds, advice = /./ }) => {
    make(store);
    const { ok, checks, lines } = await doctor(hasNoWorkspace === true ? [] : undefined, env);
    const failures = lines.filter((line) => line.startsWith('fail '));
    const found = lines.filter((line) => isOf(line, finds));
    // Nothing else fails.
    expect([found.length, failures.filter((line) => !found.includes(line)), ok]).toEqual([
      finds.length,
      [],
      failures.length === 0,
    ]);
    const failed = checks.filter(({ status }) => status === 'fail');
    expect(failed.every((check) => check.advice !== null)).toBe(true);
    expect(failed.slice(0, 1).filter((check) => !isOf(check.advice ?? '', [advice]))).toEqual([]);
  },
);

describe('a slow store', () => {
  test('is warned of, and has a few calls at a time', async () => {
    const { most } = slowDown(store, 15);
    const env = { CONFIG_FILE: fileOf('objectives: {missP99: 10ms}\n') };
    const { lines } = await doctor(['--workspace', WORKSPACE_A], env);
    expect(lines.at(-1)).toMatch(
      /^warn upstream: \d+ of \d+ calls took longer than objectives\.missP99 \(10ms\): the median is 0\.\d\d s, the slowest \d\.\d\d s$/,
    );
    expect(most()).toBe(4);
  });

  test('has no more calls a second than it may have', async () => {
    const file = fileOf('upstream: {maxRequestsPerSecond: 20, maxConnections: 2}\n');
    const { most } = slowDown(store, 0);
    const startMs = performance.now();
    await doctor([], { CONFIG_FILE: file });
    // Two probes, two lists, five ids that are not there.
    expect(store.requests).toHaveLength(9);
    expect(performance.now() - startMs).toBeGreaterThan(290);
    expect(most()).toBeLessThan(3);
  });

  test('has each check printed as it ends', async () => {
    let absences = 0;
    const held = Promise.withResolvers<void>();
    store.override(/such/, (_, response) => {
      absences += 1;
      void held.promise.then(() => sendError(response, 404, 'NOT_FOUND'));
    });
    const env = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token };
    const args = ['doctor', ...NO_GATEWAY, '--workspace', WORKSPACE_A];
    const running = await startCliUntil(/ok {6}contract {5}lists: order/, args, { env });
    expect(absences).toBeLessThan(5);
    held.resolve();
    const { status, stdout } = await running.ended;
    expect([status, stdout]).toEqual([0, expect.stringContaining('an id that is not there is answered with 404')]);
  });
});

test('a list that changes while it is compared is compared again', async () => {
  let lists = 0;
  listed((list) => {
    lists += 1;
    // A record arrives after the first look.
    if (lists === 3) store.put({ evaluations: [anEvaluation({ _id: 'ev_new', createdAtMs: 1_772_600_100_000 })] });
    list.total = [...store.evaluations.values()].length - 2;
  })(store);
  const { ok } = await doctor();
  expect([ok, lists > 20]).toEqual([false, true]);
});

describe('the address of the store', () => {
  test('UPSTREAM_URL with /internal/v1 in it', async () => {
    const { ok, checks } = await doctor([], { UPSTREAM_URL: `${store.url}/internal/v1` });
    expect([ok, checks[0]]).toEqual([
      false,
      {
        name: 'upstream',
        status: 'fail',
        message: 'the store answers a list with status 404',
        advice: 'UPSTREAM_URL holds /internal/v1, which the gateway adds itself: leave it out.',
      },
    ]);
  });

  test('an address where something else is', async () => {
    const url = `${store.url}/elsewhere`;
    const { checks } = await doctor([], { UPSTREAM_URL: url });
    expect(checks[0]?.advice).toBe(
      `Check that UPSTREAM_URL is the base address of the store: the gateway asks for ${url}/internal/v1/evaluations.`,
    );
  });

  test('https for a store without TLS', async () => {
    const { ok, checks } = await doctor([], { UPSTREAM_URL: store.url.replace('http:', 'https:') });
    expect([ok, checks[0]?.advice]).toEqual([
      false,
      'It answers at the same address with http://: correct UPSTREAM_URL, which begins with https://.',
    ]);
    // The token was not sent in plain text.
    expect(store.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  test('http for a store with TLS', async ({ skip }) => {
    const files = await makeTlsFiles();
    skip(files === null, 'there is no openssl');
    if (files === null) return;
    const options = { cert: readFileSync(files.cert), key: readFileSync(files.key) };
    const server = await listenOnLoopback(createServer(options, (_, response) => response.end('{}')));
    try {
      const { ok, checks } = await doctor([], { UPSTREAM_URL: server.url });
      expect([ok, checks[0]?.advice]).toEqual([
        false,
        'It answers at the same address with https://: correct UPSTREAM_URL, which begins with http://.',
      ]);
    } finally {
      await server.close();
      files.remove();
    }
  });

  test('a plain answer of a server with TLS', async () => {
    const server = await listenOnLoopback(
      createPlainServer((_, response) => sendText(response, 400, 'The plain HTTP request was sent to HTTPS port')),
    );
    const { checks } = await doctor([], { UPSTREAM_URL: server.url });
    await server.close();
    expect(checks[0]?.message).toBe('the store answers a list with status 400');
  });
});
