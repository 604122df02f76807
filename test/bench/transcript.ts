/**
 * What transcripts cost: parsing each format, pages early and late, hostile bodies. Prints tables and exits with
 * status 1 where a bar is missed. Usage: node --expose-gc test/bench/transcript.ts (without the flag memory isn't told).
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { TRANSCRIPT_FORMATS, type TranscriptFormat } from '../../src/domain/records.ts';
import { createPager, type TranscriptPager } from '../../src/transcript/pager.ts';
import { parseSteps, parseTranscript, runSteps } from '../../src/transcript/parse.ts';
import type { Steps } from '../../src/transcript/steps.ts';
import { salesCall } from '../support/transcript-calls.ts';
import { type HostileBody, hostileBodies } from '../support/transcript-hostile.ts';
import { renderTranscript } from '../support/transcript-render.ts';

const BODY_UNITS = 2_000_000;
const BARS = { parseCpuMs: 150, growth: 12, holdMs: 50, pageRatio: 2, hostileCpuMs: 2000, hostileMB: 150 };

const missed: string[] = [];

/** Notes a value that is over its bar. */
function bar(what: string, value: number, limit: number): number {
  if (value > limit) missed.push(`${what}: ${value} is over ${limit}`);
  return value;
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

function cpuMs(run: () => unknown): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** CPU time of the thread that the event loop runs on. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

interface SteppedRun<T> {
  readonly result: T;
  /** The longest step: by the clock, and in CPU time of the thread, which other processes can't lengthen. */
  readonly holdMs: number;
  readonly holdCpuMs: number;
  /** CPU time of the whole process, garbage collection included. */
  readonly cpuMs: number;
}

/** Runs in steps with a turn of the event loop after each. */
async function inSteps<T>(steps: Steps<T>): Promise<SteppedRun<T>> {
  let holdMs = 0;
  let holdCpuMs = 0;
  const before = process.cpuUsage();
  let began = performance.now();
  let beganCpu = threadMs();
  const endStep = (): void => {
    holdMs = Math.max(holdMs, performance.now() - began);
    holdCpuMs = Math.max(holdCpuMs, threadMs() - beganCpu);
  };
  const result = await runSteps(steps, async () => {
    endStep();
    await nextTurn();
    began = performance.now();
    beganCpu = threadMs();
  });
  endStep();
  const { user, system } = process.cpuUsage(before);
  return { result, holdMs, holdCpuMs, cpuMs: (user + system) / 1000 };
}

function bodyOf(format: TranscriptFormat, units: number): string {
  const turns = salesCall(units * 0.95);
  const body = renderTranscript(turns, format, { lineEnding: '\n', isVerbose: false });
  return renderTranscript(turns.slice(0, Math.floor((turns.length * units) / body.length)), format, {
    lineEnding: '\n',
    isVerbose: false,
  });
}

async function parsing(): Promise<void> {
  const rows: Record<string, unknown> = {};
  for (const format of TRANSCRIPT_FORMATS) {
    const [small, large] = [bodyOf(format, BODY_UNITS / 10), bodyOf(format, BODY_UNITS)];
    const first = await inSteps(parseSteps(large, format));
    const ofSmall = Math.min(...Array.from({ length: 60 }, () => cpuMs(() => parseTranscript(small, format))));
    const ofLarge = Math.min(...Array.from({ length: 15 }, () => cpuMs(() => parseTranscript(large, format))));
    rows[format] = {
      turns: first.result.turnCount,
      '200 kB, CPU ms': rounded(ofSmall),
      '2 MB, CPU ms': rounded(ofLarge),
      ratio: bar(`${format}, 2 MB to 200 kB`, rounded(ofLarge / ofSmall), BARS.growth),
      '2 MB, first time, CPU ms': bar(`${format}, parse`, rounded(first.cpuMs), BARS.parseCpuMs),
      'longest hold, CPU ms': bar(`${format}, hold`, rounded(first.holdCpuMs), BARS.holdMs),
      'by the clock': rounded(first.holdMs),
    };
  }
  console.log(`Parsing, ${BODY_UNITS / 1e6} MB`);
  console.table(rows);
}

/** Median time of a page, microseconds. */
function pageMicros(pager: TranscriptPager, request: Parameters<TranscriptPager['page']>[0]): number {
  const times = Array.from({ length: 301 }, () => {
    const began = performance.now();
    for (let i = 0; i < 20; i += 1) pager.page(request);
    return ((performance.now() - began) * 1000) / 20;
  });
  return median(times);
}

function paging(): void {
  const rows: Record<string, unknown> = {};
  const parsed = parseTranscript(bodyOf('speaker_text', BODY_UNITS), 'speaker_text');
  for (const [pageSize, maxChars] of [
    [100, 50_000],
    [200, 50_000],
    [200, 4_000],
    [1, 50_000],
    [200, 50],
  ] as const) {
    for (const raw of [false, true]) {
      const pager = createPager(parsed);
      const limits = { pageSize, maxChars, raw };
      const indexMs = cpuMs(() => pager.page({ page: 1, ...limits }));
      const { totalPages } = pager.page({ page: 1, ...limits });
      // The last page may hold less than a full one; the one before is as full as the first.
      const pages = [1, totalPages - 1, totalPages];
      pages.map((page) => pageMicros(pager, { page, ...limits }));
      const [early = 0, late = 0, last = 0] = pages.map((page) => pageMicros(pager, { page, ...limits }));
      const name = `${pageSize} x ${maxChars}${raw ? ' raw' : ''}`;
      rows[name] = {
        pages: totalPages,
        'index, CPU ms': rounded(indexMs),
        'page 1, us': rounded(early),
        'last but one, us': rounded(late),
        'last, us': rounded(last),
        'last to 1': bar(`${name}, last page to page 1`, rounded(Math.max(last, late) / early), BARS.pageRatio),
      };
    }
  }
  console.log('Pages of a 2 MB speaker_text');
  console.table(rows);
}

function usedMB(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 1e6;
}

async function hostile({ name, body, declared }: HostileBody): Promise<Record<string, unknown>> {
  const before = usedMB();
  const parsed = await inSteps(parseSteps(body, declared));
  const peak = process.memoryUsage();
  const pager = createPager(parsed.result);
  const pages = await inSteps(pager.pageSteps({ page: 1, pageSize: 200, maxChars: 50_000, raw: false }));
  const tiny = await inSteps(pager.pageSteps({ page: 1, pageSize: 200, maxChars: 2, raw: false }));
  const held = usedMB() - before;
  const runs = [parsed, pages, tiny];
  const holdCpuMs = Math.max(...runs.map((run) => run.holdCpuMs));
  return {
    turns: parsed.result.turnCount,
    'parse, CPU ms': bar(`${name}, parse`, rounded(parsed.cpuMs), BARS.hostileCpuMs),
    'first page, CPU ms': rounded(pages.cpuMs),
    'of 2 characters, CPU ms': bar(`${name}, pages of 2`, rounded(tiny.cpuMs), BARS.hostileCpuMs),
    'longest hold, CPU ms': bar(`${name}, hold`, rounded(holdCpuMs), BARS.holdMs),
    'by the clock': rounded(Math.max(...runs.map((run) => run.holdMs))),
    'held MB': bar(`${name}, memory`, rounded(held), BARS.hostileMB),
    'told MB': rounded(pager.weightBytes / 1e6),
    'after parse MB': rounded((peak.heapUsed + peak.arrayBuffers) / 1e6 - before),
  };
}

await parsing();
paging();
const rows: Record<string, unknown> = {};
const million = {
  name: 'WebVTT, a million cues',
  body: `WEBVTT\n\n${'0:0-->0:0\n\n'.repeat(1e6)}`,
  declared: null,
  turns: 1e6,
};
for (const body of [...hostileBodies(BODY_UNITS), million]) rows[body.name] = await hostile(body);
console.log('Hostile bodies of 2 MB, one after another in one process');
console.table(rows);
for (const what of missed) console.error(`missed: ${what}`);
process.exitCode = missed.length === 0 ? 0 : 1;
