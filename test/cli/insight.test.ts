/** `evalgate cache advice` and `evalgate fleet` on real gateways that answer reads. */
import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { durationText } from '../../src/time/duration.ts';
import { forTest } from '../support/opened.ts';
import { cellsOf, runCli, runJson } from '../support/cli.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { anEvaluation } from '../support/records.ts';

const MINUTE = 60_000;
const pointSchema = z.object({
  freshMs: z.number(),
  hitRatio: z.number(),
  staleRatio: z.number(),
  ageP90Ms: z.number(),
  ageP90MsError: z.number(),
  outdatedRatio: z.number().nullable(),
  extrapolated: z.boolean(),
});
const adviceSchema = z.looseObject({
  classes: z.array(
    z.looseObject({
      class: z.string(),
      reads: z.number(),
      current: pointSchema.nullable(),
      measured: z.object({ hitRatio: z.number(), upstreamRps: z.number() }).nullable(),
      curve: z.array(pointSchema),
      recommendation: z.object({ freshMs: z.number().nullable(), why: z.string() }),
    }),
  ),
});

let gateway: TestGateway;
let key: string;
beforeEach(async () => {
  gateway = await forTest(startTestGateway({ env: { CACHE_EVALUATION_FRESH: '30s' } }));
  gateway.store.put({ evaluations: [anEvaluation()] });
  key = await gateway.issueKey({ perMinute: 100_000, perHour: 100_000 });
});

const run = (...args: readonly string[]) => runCli(args, { env: { ADMIN_PORT: new URL(gateway.adminUrl).port } });

/** Enough reads to judge by: one every three seconds of a call that never changes. */
async function readOften(): Promise<void> {
  for (let sent = 0; sent < 1050; sent += 1) {
    await gateway.get('/v2/calls/ev_1', { key });
    gateway.clock.advance(3000);
  }
}

async function adviceOf(cacheClass: string) {
  const args = ['cache', 'advice', '--class', cacheClass, '--admin', gateway.adminUrl];
  const [advice] = adviceSchema.parse(await runJson(args)).classes;
  if (advice === undefined) throw new Error(`no advice on ${cacheClass}`);
  return advice;
}

const percent = (ratio: number): string => `${(ratio * 100).toFixed(1)} %`;

describe('advice', () => {
  test('without any read says so', async () => {
    expect(await run('cache', 'advice')).toEqual({
      status: 0,
      stdout: 'No reads yet: list, evaluation, transcript, scorecard, rubric, dealInsights, notFound.\n',
      stderr: '',
    });
  });

  test('is a chart a class that was read: a row a time, why, and the line that applies it', async () => {
    await readOften();
    const { reads, measured, curve, current, recommendation } = await adviceOf('evaluation');
    const { status, stdout } = await run('cache', 'advice');
    const [chart = '', load, idle, hint] = stdout.split('\n\n');
    expect([status, idle, hint]).toEqual([
      0,
      'No reads yet: list, transcript, scorecard, rubric, dealInsights, notFound.',
      '`evalgate cache advice --help` explains the columns.\n',
    ]);
    expect(load).toMatch(
      /^All classes together: 0\.\d\d ±\S+ store calls\/s with the times in force, \S+ ±\S+ with all recommendations, at most 0\.\d\d \(twice what the times in force cost\)\.$/,
    );
    const lines = chart.split('\n');
    expect(lines[0]).toBe(`evaluation: ${reads} reads in one process since 2026-01-15T12:00:00.000Z`);
    // Only the first twelve hours of a process are counted together with its start.
    expect(lines[1]).toBe(
      'Some of these reads are of the start, when nothing was cached: the first read of a record is a miss with any time.',
    );
    lines.splice(1, 1);
    expect(lines[1]).toMatch(
      new RegExp(
        `^Measured with the times in force: hit ratio ${percent(measured?.hitRatio ?? -1)}, 0\\.\\d\\d store calls/s$`,
      ),
    );
    expect(cellsOf(lines[2] ?? '')).toEqual([
      ['TIME', 'HIT RATIO', 'STALE', 'STORE CALLS/S', 'ALL CLASSES', 'AGE P90', 'OUTDATED'],
    ]);
    const rows = cellsOf(
      lines
        .slice(
          3,
          lines.findIndex((line) => line.startsWith('Records change')),
        )
        .join('\n'),
    );
    const rowOf = (freshMs: number) => rows.find((cells) => cells[0] === timeText(freshMs));
    for (const { freshMs, hitRatio, extrapolated } of curve.filter((point) => rowOf(point.freshMs) !== undefined)) {
      const marks = [
        ...(freshMs === current?.freshMs ? ['now'] : []),
        ...(freshMs === recommendation.freshMs ? ['recommended'] : []),
        ...(extrapolated ? ['extrapolated'] : []),
      ];
      const row = rowOf(freshMs);
      expect(row?.join(' ')).toMatch(new RegExp(`${percent(hitRatio)} \\S+ \\S+ .*${marks.join(', ')}$`));
      const bar = row?.[1] ?? '';
      const full = Math.floor(Math.round(hitRatio * 192) / 8);
      expect(bar.split('█').length - 1).toBe(full);
    }
    // Times with the same prediction have one row together.
    const hidden = [...curve.entries()].filter(([, { freshMs }]) => rowOf(freshMs) === undefined);
    expect(hidden.filter(([index, { hitRatio }]) => hitRatio !== curve[index - 1]?.hitRatio)).toEqual([]);
    expect(hidden.map(([, { freshMs }]) => freshMs)).not.toContain(recommendation.freshMs);
    expect(rows.length).toBeLessThan(curve.length);
    expect(current?.freshMs).toBe(30_000);
    expect(recommendation.freshMs).toBeGreaterThan(30_000);
    expect(lines.slice(3 + rows.length)).toEqual([
      expect.stringMatching(/^Records change, by how long they were unchanged: up to 1h: [\d.]+ % ±[\d.]+ in 1h\.$/),
      recommendation.why,
      `To apply it for an hour, or without --for until it is reset: evalgate cache ttl set evaluation --fresh ${timeText(recommendation.freshMs ?? 0)} --for 1h`,
    ]);
  });

  test('says if a longer time would be possible with announcements of changes', async () => {
    for (let change = 1; change <= 12; change += 1) {
      for (let sent = 0; sent < 100; sent += 1) {
        await gateway.get('/v2/calls/ev_1', { key });
        gateway.clock.advance(3000);
      }
      gateway.store.put({ evaluations: [anEvaluation({ title: `change ${change}` })] });
    }
    expect((await run('cache', 'advice')).stdout).toMatch(
      /^If the store announced its changes, 20m instead of \S+ would take this class from 0\.\d+ to at most 0\.\d+ store calls a second, with 0\.\d % of the answers outdated \(limit 2 %\)\.$/m,
    );
  });

  test('says if it is not known how many changes are announced', async () => {
    gateway = await forTest(startTestGateway({ env: { CACHE_EVALUATION_FRESH: '30s', CHANGES_ANNOUNCED: 'true' } }));
    gateway.store.put({ evaluations: [anEvaluation()] });
    key = await gateway.issueKey({ perMinute: 100_000, perHour: 100_000 });
    await readOften();
    expect((await run('cache', 'advice')).stdout).toContain(
      '\nToo few changes were found in the last hour to tell how many of them the store announces: 0; it takes 30.\n',
    );
  });

  test('says when it is `stale` that makes answers old, and by how much; a hit that is stale is shown as one', async () => {
    await readOften();
    expect((await run('cache', 'advice')).stdout).not.toContain('because `stale` is');
    // From now on each read comes after the fresh time.
    for (let sent = 0; sent < 1500; sent += 1) {
      await gateway.get('/v2/calls/ev_1', { key });
      gateway.clock.advance(120_000);
    }
    const { current } = await adviceOf('evaluation');
    const { stdout } = await run('cache', 'advice');
    expect(current?.hitRatio).toBeGreaterThan(0.95);
    expect(current?.staleRatio).toBeGreaterThan(0.5);
    expect(stdout).toMatch(
      /^\d\d(?:\.\d)? % of the answers are older than the 30s for which they are fresh, by up to 1m (?:2|3|4)\ds in nine of ten: .* because `stale` is 1h\. /m,
    );
    const row = cellsOf(stdout).find(([time, ...rest]) => time === '30s' && rest.join().includes('now'));
    expect(row).toContain(percent(current?.staleRatio ?? 0));
    // By now, the start is over.
    expect(stdout).not.toContain('are of the start');
  });

  test('a figure that chance may move by more than itself has its upper bound', async () => {
    // One read in twelve comes after a pause, and finds a copy that is old.
    for (let sent = 1; sent <= 60; sent += 1) {
      await gateway.get('/v2/calls/ev_1', { key });
      gateway.clock.advance(sent % 12 === 0 ? 300_000 : 1000);
    }
    const { curve } = await adviceOf('evaluation');
    const unsure = curve.filter(({ ageP90Ms, ageP90MsError }) => ageP90MsError > ageP90Ms);
    const rows = cellsOf((await run('cache', 'advice')).stdout);
    const shown = unsure.filter(({ freshMs }) => rows.some(([time]) => time === timeText(freshMs)));
    expect(shown.length).toBeGreaterThan(0);
    for (const { freshMs, ageP90Ms, ageP90MsError } of shown) {
      const row = rows.find(([time]) => time === timeText(freshMs))?.join('  ');
      expect(row).toContain(`${durationText(ageP90Ms)}  to ${durationText(ageP90Ms + ageP90MsError)}`);
    }
  });

  test('its line goes to the listener that was named; what is in force already needs none', async () => {
    await readOften();
    const { recommendation } = await adviceOf('evaluation');
    const args = ['cache', 'advice', '--class', 'evaluation', '--admin', gateway.adminUrl];
    const before = await runCli(args);
    expect(before.stdout).not.toContain('rubric');
    const [, line = ''] = /^To apply it for an hour, .*: evalgate (.*)$/m.exec(before.stdout) ?? [];
    expect(line).toMatch(new RegExp(` --admin ${gateway.adminUrl}$`));
    expect((await runCli(line.split(' '))).status).toBe(0);
    gateway.clock.advance(3000);
    const after = await runCli(args);
    expect(after.stdout).toMatch(/ now(?:, recommended)?/);
    expect((await adviceOf('evaluation')).current?.freshMs).toBe(recommendation.freshMs);
  });

  test('a measured hit ratio far from the one that is worked out is said to be doubtful', async () => {
    await readOften();
    const before = await run('cache', 'advice');
    expect(before.stdout).not.toContain('Trust the differences');
    // Purges make misses that no time explains.
    for (let sent = 0; sent < 200; sent += 1) {
      await gateway.admin('POST', '/api/cache/purge', { tags: ['evaluation:ev_1'] });
      await gateway.get('/v2/calls/ev_1', { key });
      gateway.clock.advance(1000);
    }
    const { current, measured } = await adviceOf('evaluation');
    const after = await run('cache', 'advice');
    expect(after.stdout).toContain(
      `For the time in force the prediction is a hit ratio of ${percent(current?.hitRatio ?? -1)}, and ${percent(measured?.hitRatio ?? -1)} was measured:`,
    );
  });
});

function timeText(ms: number): string {
  const units = [
    ['d', 24 * 60 * MINUTE],
    ['h', 60 * MINUTE],
    ['m', MINUTE],
    ['s', 1000],
  ] as const;
  const [unit, unitMs] = units.find(([, lengthMs]) => ms % lengthMs === 0) ?? ['ms', 1];
  return `${ms / unitMs}${unit}`;
}

describe('fleet', () => {
  test('is a line a process, and says which one was asked', async () => {
    const document = z
      .looseObject({ members: z.array(z.looseObject({ id: z.string(), host: z.string(), version: z.string() })) })
      .parse(await runJson(['fleet', '--admin', gateway.adminUrl]));
    const [self] = document.members;
    const { status, stdout } = await run('fleet');
    expect([status, cellsOf(stdout)]).toEqual([
      0,
      [
        ['HOST', 'PID', 'VERSION', 'STATUS', 'STARTED AT', 'REPORTED', 'ID'],
        [
          self?.host,
          String(process.pid),
          self?.version,
          'ready',
          '2026-01-15T12:00:00.000Z',
          'now',
          self?.id,
          'answers this',
        ],
      ],
    ]);
    expect(document).toEqual((await gateway.admin('GET', '/api/fleet')).json);
  });
});
