/** Measures the cost of transcripts (parsing each format, pages early and late, hostile bodies), and prints it as JSON. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { TRANSCRIPT_FORMATS, type TranscriptFormat } from '../../src/domain/vocabulary.ts';
import { TranscriptPager } from '../../src/transcript/pager.ts';
import { parseSlices } from '../../src/transcript/parse.ts';
import type { Slices } from '../../src/transcript/slices.ts';
import type { PageRequest } from '../../src/transcript/pager.ts';
import { salesCall } from '../support/transcript-calls.ts';
import { type HostileBody, hostileBodies } from '../support/transcript-hostile.ts';
import { renderTranscript } from '../support/transcript-render.ts';
import { BODY_UNITS, type Costs, HOSTILE_UNITS } from './transcript-bars.ts';
import { pageOf, parseTranscript, runSlices } from '../support/transcript-at-once.ts';

const DOZEN = 12;
const TENTHS = 10;

/** How often a thing is measured; the best counts. */
const ROUNDS = 30;
const HOSTILE_ROUNDS = 4;

/** One after another, in this process. */
async function measureCosts(): Promise<Costs> {
  const parsing: Costs['parsing'] = [];
  for (const format of TRANSCRIPT_FORMATS) parsing.push(await parsingOf(format));
  const paging = pagingOf();
  const hostile: Costs['hostile'] = [];
  const cues = HOSTILE_UNITS / 8;
  const manyCues = {
    name: `WebVTT, ${cues.toLocaleString('en')} cues`,
    body: `WEBVTT\n\n${'0:0-->0:0\n\n'.repeat(cues)}`,
    declared: null,
    turns: cues,
  };
  const small = new Map(hostileBodies(BODY_UNITS).map(({ name, body, declared }) => [name, { body, declared }]));
  for (const body of [...hostileBodies(HOSTILE_UNITS), manyCues]) {
    const { body: text, declared } = small.get(body.name) ?? body;
    // A store's answer is measured in bytes.
    const bytes = Buffer.from(text).subarray(0, BODY_UNITS);
    const rounds = Array.from({ length: HOSTILE_ROUNDS }, () => bytes.toString());
    const quickest = Math.min(...rounds.map((round) => cpuMs(() => parseTranscript(round, declared))));
    hostile.push({ ...(await hostileOf(body)), quickestCpuMs: rounded(quickest) });
  }
  return { parsing, paging, hostile };
}

async function parsingOf(format: TranscriptFormat): Promise<Costs['parsing'][number]> {
  const [small, large] = [bodyOf(format, BODY_UNITS / TENTHS), bodyOf(format, BODY_UNITS)];
  // As many texts of their own as make up the large one: a single one would stay in the processor's cache, where the large
  // one has no room, and its quickest round would be one without garbage collection.
  const tenths = Array.from({ length: TENTHS }, () => Buffer.from(small).toString());
  const first = await inSteps(parseSlices(large, format));
  const bestOf = (bodies: readonly string[]): number =>
    Math.min(...Array.from({ length: ROUNDS }, () => cpuMs(() => bodies.map((body) => parseTranscript(body, format)))));
  const [ofSmall, ofLarge] = [bestOf(tenths) / TENTHS, bestOf([large])];
  return {
    format,
    ratio: rounded(ofLarge / ofSmall),
    firstCpuMs: rounded(first.cpuMs),
    holdCpuMs: rounded(first.holdCpuMs),
    holdMs: rounded(first.holdMs),
  };
}

function pagingOf(): Costs['paging'] {
  const parsed = parseTranscript(bodyOf('speaker_text', BODY_UNITS), 'speaker_text');
  const limits = [
    [100, 50_000],
    [200, 50_000],
    [200, 4_000],
    [1, 50_000],
    [200, 50],
  ] as const;
  return limits.flatMap(([pageSize, maxChars]) =>
    [false, true].map((raw) => {
      const pager = new TranscriptPager(parsed);
      const request = { pageSize, maxChars, raw };
      const name = `${pageSize} x ${maxChars}${raw ? ' raw' : ''}`;
      return { name, ...pageCosts(pager, request) };
    }),
  );
}

/**
 * One page costs up to twice another of its kind wherever both are, by what it holds and how far it is from the nearest
 * page that is indexed; so that a dozen are taken together from either end, besides the very first and last.
 */
function pageCosts(pager: TranscriptPager, request: Omit<PageRequest, 'page'>) {
  const { totalPages } = pageOf(pager, { page: 1, ...request });
  const early = Array.from({ length: DOZEN }, (_, i) => i + 1);
  const pages = [...early, ...early.map((page) => totalPages - DOZEN + page)];
  const measure = (): number[] => pages.map((page) => pageMicros(pager, { page, ...request }));
  measure();
  const micros = measure();
  const [first = 0, last = 0] = [micros[0], micros.at(-1)];
  const [earlyMicros, lateMicros] = [mean(micros.slice(0, DOZEN)), mean(micros.slice(DOZEN))];
  return {
    lateMicros: rounded(lateMicros),
    ratio: rounded(Math.max(lateMicros / earlyMicros, last / first)),
  };
}

async function hostileOf({
  name,
  body,
  declared,
}: HostileBody): Promise<Omit<Costs['hostile'][number], 'quickestCpuMs'>> {
  // In one piece, as it comes from the store's JSON: a text that was put together is copied when it is first read.
  const text = Buffer.from(body).toString();
  const before = usedMB();
  const parsed = await inSteps(parseSlices(text, declared));
  const pager = new TranscriptPager(parsed.result);
  const pages = await inSteps(pager.pageSlices({ page: 1, pageSize: 200, maxChars: 50_000, raw: false }));
  const tiny = await inSteps(pager.pageSlices({ page: 1, pageSize: 200, maxChars: 2, raw: false }));
  const held = usedMB() - before;
  const runs = [parsed, pages, tiny];
  return {
    name,
    parseCpuMs: rounded(parsed.cpuMs),
    tinyPagesCpuMs: rounded(tiny.cpuMs),
    holdCpuMs: rounded(Math.max(...runs.map((run) => run.holdCpuMs))),
    holdMs: rounded(Math.max(...runs.map((run) => run.holdMs))),
    heldMB: rounded(held),
  };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
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
async function inSteps<T>(steps: Slices<T>): Promise<SteppedRun<T>> {
  let holdMs = 0;
  let holdCpuMs = 0;
  const before = process.cpuUsage();
  let began = performance.now();
  let beganCpu = threadMs();
  const endStep = (): void => {
    holdMs = Math.max(holdMs, performance.now() - began);
    holdCpuMs = Math.max(holdCpuMs, threadMs() - beganCpu);
  };
  const result = await runSlices(steps, async () => {
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

/** The best time of a page: whatever else runs on the machine only makes it longer. */
function pageMicros(pager: TranscriptPager, request: PageRequest): number {
  const times = Array.from({ length: 5 * ROUNDS }, () => {
    const began = performance.now();
    for (let i = 0; i < 20; i += 1) pageOf(pager, request);
    return ((performance.now() - began) * 1000) / 20;
  });
  return Math.min(...times);
}

/** The memory in use after a full garbage collection. */
function usedMB(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc()');
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 1e6;
}

process.stdout.write(JSON.stringify(await measureCosts()));
