/**
 * What the what-if model predicts against what the real read-through cache does: each trace is replayed through the cache
 * once for the model to watch, and then once with each of the other times that the model has spoken of.
 */
import { hash32 } from '../../../src/cache/hash.ts';
import { adviceOf } from '../../../src/cache/what-if/advice.ts';
import { WhatIfModel } from '../../../src/cache/what-if/model.ts';
import { localWhatIf } from '../../../src/cache/what-if/what-if.ts';
import { AdjustableTimes, CACHE_CLASSES, type CacheClass } from '../../../src/cache/times.ts';
import { heldBytes } from '../../support/held-bytes.ts';
import { replay } from '../../support/cache-replay.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { count, type Row, type Scale } from '../row.ts';
import { feed, readsOf, type Setting, settingsOf, timesOf } from './what-if-settings.ts';

const BAR_POINTS = 1;
const BAR_BYTES = 1_000_000;
const BAR_CPU = 0.02;
const READS_PER_SECOND = 2000;
const ADVICE_EVERY_READS = 2 * READS_PER_SECOND;

export async function run(scale: Scale): Promise<readonly Row[]> {
  const settings = settingsOf(scale);
  const rows: Row[] = [];
  const together = predictTogether(settings);
  for (const setting of settings) rows.push(await judge(setting, together.get(setting.class) ?? [], scale));
  return [...rows, bytesRow(settings), cpuRow(settings)];
}

interface Prediction {
  readonly freshMs: number;
  readonly hitRatio: number;
}

async function judge(setting: Setting, together: readonly Prediction[], scale: Scale): Promise<Row> {
  const watched = await watch(setting);
  // Each replay takes its time: the short form makes do with three.
  const wanted = watched.curve.filter((_, index) => scale === 'whole' || index % 5 === 2);
  const measured = new Map<number, number>();
  for (const { freshMs } of wanted) {
    const calls =
      freshMs === setting.freshMs
        ? watched.calls
        : await replay({ ...setting, times: timesOf(freshMs), clock: new ManualClock() });
    measured.set(freshMs, 1 - calls / setting.trace.keys.length);
  }
  const alone = largestError(watched.curve, measured);
  const beside = largestError(together, measured);
  const hits = [...measured.values()].map((ratio) => Math.round(100 * ratio));
  return {
    name: `what-if, ${setting.name}`,
    bar: `hit ratio of ${measured.size} times from 500 ms to 24 h predicted from one replay with ${setting.freshMs / 1000} s: off by at most ${BAR_POINTS} point`,
    measured:
      `${count(setting.trace.keys.length)} reads of ${count(new Set(setting.trace.keys).size)} keys, hit ratios of ` +
      `${Math.min(...hits)} to ${Math.max(...hits)} %: off by ${told(alone)}; in one model with all traces by ${told(beside)}`,
    ok: Math.max(alone.points, beside.points) <= BAR_POINTS && measured.size >= (scale === 'whole' ? 13 : 3),
  };
}

/** One replay, with the model where it stands in a gateway. */
async function watch(setting: Setting): Promise<{ readonly curve: readonly Prediction[]; readonly calls: number }> {
  const clock = new ManualClock();
  const times = new AdjustableTimes();
  times.set(setting.class, timesOf(setting.freshMs));
  const model = new WhatIfModel({ clock, times });
  const { hooks } = localWhatIf({ model, clock });
  const calls = await replay({ ...setting, times: timesOf(setting.freshMs), clock, hooks });
  return { calls, curve: curveOf(model, { class: setting.class, times, clock }) };
}

/** All traces at once: their keys share what room there is. */
function predictTogether(settings: readonly Setting[]): ReadonlyMap<CacheClass, readonly Prediction[]> {
  const { model, times, clock } = modelFor(settings);
  feed(readsOf(settings), clock, (read) => model.read(read.class, read.keyHash, read.atMs));
  return new Map(settings.map((each) => [each.class, curveOf(model, { class: each.class, times, clock })]));
}

function modelFor(settings: readonly Setting[]) {
  const clock = new ManualClock();
  const times = new AdjustableTimes();
  for (const each of settings) times.set(each.class, timesOf(each.freshMs));
  return { clock, times, model: new WhatIfModel({ clock, times }) };
}

interface About {
  readonly class: CacheClass;
  readonly times: AdjustableTimes;
  readonly clock: ManualClock;
}

/** Through all that a prediction passes on its way to whoever asks for advice. */
function curveOf(model: WhatIfModel, { class: cacheClass, times, clock }: About): readonly Prediction[] {
  const outdatedLimits = {
    list: 0.02,
    evaluation: 0.02,
    transcript: 0.02,
    scorecard: 0.02,
    rubric: 0.02,
    dealInsights: 0.02,
    notFound: 0.02,
  };
  const advice = adviceOf([model.snapshot()], { times, outdatedLimits, nowMs: clock.nowMs() });
  return advice.find((each) => each.class === cacheClass)?.curve ?? [];
}

interface Miss {
  readonly points: number;
  readonly freshMs: number;
}

function largestError(curve: readonly Prediction[], measured: ReadonlyMap<number, number>): Miss {
  const misses = [...measured].map(([freshMs, hitRatio]) => {
    const predicted = curve.find((point) => point.freshMs === freshMs)?.hitRatio ?? Number.NaN;
    return { freshMs, points: Math.abs(100 * (predicted - hitRatio)) };
  });
  return misses.toSorted((a, b) => b.points - a.points)[0] ?? { freshMs: 0, points: Number.NaN };
}

function told({ points, freshMs }: Miss): string {
  return `${points.toFixed(2)} (${freshMs / 1000} s)`;
}

/** With all classes in use and as many keys as there is room for. */
function bytesRow(settings: readonly Setting[]): Row {
  const reads = readsOf(settings);
  const fill = () => {
    const { model, clock } = modelFor(settings);
    feed(reads, clock, (read) => model.read(read.class, read.keyHash, read.atMs));
    for (const each of CACHE_CLASSES) {
      model.read(each, hash32(each), clock.nowMs());
      model.refreshed(each, true, 60_000);
    }
    return model;
  };
  const { value, bytes } = heldBytes(fill);
  return {
    name: 'what-if, memory',
    bar: `at most ${count(BAR_BYTES)} bytes a process, all classes together`,
    measured: `${count(value.bytes)} bytes by its own count, ${count(bytes)} by the runtime's`,
    ok: value.bytes <= BAR_BYTES && bytes <= BAR_BYTES && bytes <= value.bytes,
  };
}

function cpuRow(settings: readonly Setting[]): Row {
  const { model, clock } = modelFor(settings);
  const reads = readsOf(settings);
  let left = ADVICE_EVERY_READS;
  const began = process.cpuUsage();
  feed(reads, clock, (read) => {
    model.read(read.class, read.keyHash, read.atMs);
    if (--left > 0) return;
    left = ADVICE_EVERY_READS;
    JSON.stringify(model.snapshot());
  });
  const { user, system } = process.cpuUsage(began);
  const nanos = ((user + system) * 1000) / reads.length;
  const share = (nanos * READS_PER_SECOND) / 1e9;
  return {
    name: 'what-if, CPU',
    bar: `at most ${100 * BAR_CPU} % of a core at ${count(READS_PER_SECOND)} reads a second`,
    measured: `${count(Math.round(nanos))} ns a read, a snapshot every ${count(ADVICE_EVERY_READS)} reads included: ${(100 * share).toFixed(2)} %`,
    ok: share <= BAR_CPU,
  };
}
