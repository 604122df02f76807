/**
 * What a cap on calls in flight that adapts itself would gain over the fixed one: a simulation in virtual time of a store
 * that gets slower by the square beyond what it bears, offered three times that. Prints a table.
 * Usage: node test/bench/adaptive-cap.ts
 */

/** Decides on the cap by how calls went. */
interface Cap {
  value(): number;
  note(call: { readonly tookMs: number; readonly isGood: boolean; readonly inFlight: number }): void;
}

interface Scene {
  readonly name: string;
  readonly bears: (nowMs: number) => number;
  /** Of the logarithm of an unloaded answer's time; its median is SERVICE_MS. */
  readonly spread: number;
}

const SERVICE_MS = 120;
const PER_SECOND = 1250;
const FOR_MS = 60_000;
const QUEUE = 100;
const QUEUE_TIMEOUT_MS = 1000;
const TIMEOUT_MS = 10_000;

function fixed(cap: number): Cap {
  return { value: () => cap, note: () => undefined };
}

/** TCP Vegas, as in Netflix's concurrency-limits. */
function vegas(): Cap {
  let [cap, leastMs, since] = [20, Number.POSITIVE_INFINITY, 0];
  return {
    value: () => cap,
    note: ({ tookMs, isGood, inFlight }) => {
      since += 1;
      if (since > 30 * cap) [since, leastMs] = [0, tookMs];
      leastMs = Math.min(leastMs, tookMs);
      const step = Math.max(1, Math.log10(cap));
      const queued = cap * (1 - leastMs / tookMs);
      if (!isGood) cap -= step;
      else if (inFlight * 2 >= cap) {
        if (queued <= step) cap += 6 * step;
        else if (queued < 3 * step) cap += step;
        else if (queued > 6 * step) cap -= step;
      }
      cap = Math.max(1, Math.min(1000, cap));
    },
  };
}

/** Gradient2 of the same library: the recent time against that of the last 600 calls. */
function gradient(): Cap {
  let [cap, longMs] = [20, 0];
  return {
    value: () => cap,
    note: ({ tookMs, isGood, inFlight }) => {
      if (!isGood) return;
      longMs = longMs === 0 ? tookMs : longMs + ((tookMs - longMs) * 2) / 601;
      if (longMs / tookMs > 2) longMs *= 0.95;
      if (inFlight * 2 < cap) return;
      const factor = Math.max(0.5, Math.min(1, (1.5 * longMs) / tookMs));
      cap = Math.max(20, Math.min(200, 0.8 * cap + 0.2 * (cap * factor + 4)));
    },
  };
}

/** One more a round trip, a tenth less for each call that fails or takes too long. */
function additive(): Cap {
  let cap = 20;
  return {
    value: () => cap,
    note: ({ tookMs, isGood, inFlight }) => {
      if (!isGood || tookMs > 1500) cap = Math.max(1, cap * 0.9);
      else if (inFlight * 2 >= cap) cap = Math.min(1000, cap + 1 / cap);
    },
  };
}

/** Numbers from 0 to below 1, the same in every run (mulberry32). */
function randomSource(): () => number {
  let state = 1;
  return () => {
    state = Math.trunc(state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What is to happen, by millisecond: finer than that makes no difference here. */
class Agenda {
  readonly #by: (() => void)[][] = [];
  nowMs = 0;

  after(delayMs: number, run: () => void): void {
    const at = this.nowMs + Math.max(1, Math.round(delayMs));
    (this.#by[at] ??= []).push(run);
  }

  run(untilMs: number): void {
    for (; this.nowMs < untilMs; this.nowMs += 1) for (const run of this.#by[this.nowMs] ?? []) run();
  }
}

function simulate(cap: Cap, { bears, spread }: Scene): readonly string[] {
  const [random, agenda] = [randomSource(), new Agenda()];
  const queue: number[] = [];
  const tookMs: number[] = [];
  let [inFlight, atStore, failed] = [0, 0, 0];
  const end = (sentMs: number, isGood: boolean, arrivedMs: number): void => {
    cap.note({ tookMs: agenda.nowMs - sentMs, isGood, inFlight });
    inFlight -= 1;
    if (isGood) tookMs.push(agenda.nowMs - arrivedMs);
    else failed += 1;
    serve();
  };
  const send = (arrivedMs: number): void => {
    const [sentMs, load] = [agenda.nowMs, (atStore + 1) / bears(agenda.nowMs)];
    inFlight += 1;
    if (load > 4) {
      agenda.after(5, () => end(sentMs, false, arrivedMs));
      return;
    }
    atStore += 1;
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const serviceMs = SERVICE_MS * Math.exp(spread * normal) * Math.max(1, load ** 2);
    agenda.after(serviceMs, () => (atStore -= 1));
    agenda.after(Math.min(serviceMs, TIMEOUT_MS), () => end(sentMs, serviceMs <= TIMEOUT_MS, arrivedMs));
  };
  const serve = (): void => {
    while (queue.length > 0 && inFlight < Math.floor(cap.value())) {
      const arrivedMs = queue.shift() ?? 0;
      if (agenda.nowMs - arrivedMs <= QUEUE_TIMEOUT_MS) send(arrivedMs);
    }
  };
  const arrive = (): void => {
    if (queue.length < QUEUE) queue.push(agenda.nowMs);
    serve();
  };
  for (let call = 0; call < (FOR_MS * PER_SECOND) / 1000; call += 1) agenda.after((call * 1000) / PER_SECOND, arrive);
  agenda.run(FOR_MS);
  const sorted = tookMs.toSorted((a, b) => a - b);
  const at = (share: number): string => `${sorted[Math.floor(sorted.length * share)] ?? 0} ms`;
  return [`${Math.round((1000 * tookMs.length) / FOR_MS)}/s`, at(0.5), at(0.99), String(failed)];
}

const SCENES: readonly Scene[] = [
  { name: 'bears 50, answers in 120 ms', bears: () => 50, spread: 0 },
  { name: 'bears 50, answers in 120 ms (p99 1.5 s)', bears: () => 50, spread: 1.08 },
  {
    name: 'bears 50, then 20, then 50 for 20 s each',
    bears: (ms) => (Math.floor(ms / 20_000) === 1 ? 20 : 50),
    spread: 0,
  },
];
const CAPS: readonly (readonly [name: string, make: () => Cap])[] = [
  ['fixed at 25', () => fixed(25)],
  ['fixed at 50', () => fixed(50)],
  ['fixed at 100', () => fixed(100)],
  ['Vegas', vegas],
  ['Gradient2', gradient],
  ['AIMD', additive],
];

const rows = SCENES.flatMap((scene) => CAPS.map(([name, make]) => [scene.name, name, ...simulate(make(), scene)]));
const lines = [
  ['store', 'cap', 'answered', 'p50', 'p99', 'failed'],
  ['---', '---', '---', '---', '---', '---'],
  ...rows,
];
console.log(lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n'));
