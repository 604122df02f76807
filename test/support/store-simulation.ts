/**
 * A store as a formula, and processes that call it under their limits (`ConcurrencyLimit`): minutes pass in milliseconds, and
 * the same seed gives the same run.
 *
 * A call's latency is decided when it begins, by how many are under way then. Each process always has more calls to make,
 * unless it has a rate.
 */
import { ConcurrencyLimit, type CallEnd } from '../../src/upstream/concurrency-limit.ts';
import type { ResourceKind } from '../../src/upstream/resources.ts';
import { SeededRandom } from './random.ts';

export interface SimulatedCall {
  /** Calls under way at the store, this one included. */
  readonly inFlight: number;
  readonly atMs: number;
  readonly resource: ResourceKind;
  readonly keyId: string;
  readonly random: SeededRandom;
}

export interface SimulatedAnswer {
  readonly latencyMs: number;
  /** Without it, it is answered. */
  readonly sign?: CallEnd['sign'];
}

export type Curve = (call: SimulatedCall) => SimulatedAnswer;

interface SimulatedProcess {
  readonly fromMs?: number;
  readonly untilMs?: number;
  /** Calls a second that come at random; without it there are always more. */
  readonly perSecond?: number;
  /** How far its wall clock is ahead. */
  readonly clockAheadMs?: number;
}

export interface SimulationOptions {
  readonly curve: Curve;
  readonly seconds: number;
  readonly processes: readonly SimulatedProcess[];
  readonly max?: number;
  readonly keys?: number;
  readonly resources?: readonly ResourceKind[];
  readonly seed?: number;
}

/** The figures of one second. */
interface Second {
  answered: number;
  failed: number;
  /** Calls under way, times milliseconds. */
  inFlightMs: number;
  readonly latenciesMs: number[];
  /** In the middle of it, one per process; null for one that is not there. */
  limits: readonly (number | null)[];
  /** How many failures the limits answered for. */
  answeredFor: number;
}

interface Event {
  readonly atMs: number;
  readonly run: () => void;
}

const MAX_WAITING = 100;

/** A store of that latency whatever is asked of it. */
export function constant(latencyMs: number): Curve {
  return () => ({ latencyMs });
}

/** As fast as `latencyMs` for up to `capacity` calls at a time; beyond, each takes longer by as much as there are more. */
export function linear(latencyMs: number, capacity: number | ((atMs: number) => number)): Curve {
  return ({ inFlight, atMs }) => {
    const bears = typeof capacity === 'number' ? capacity : capacity(atMs);
    return { latencyMs: latencyMs * Math.max(1, inFlight / bears) };
  };
}

/** The curve with latencies that vary: `spread` is the standard deviation of their logarithms. */
export function uneven(curve: Curve, spread: number): Curve {
  return (call) => {
    const answer = curve(call);
    return { ...answer, latencyMs: answer.latencyMs * Math.exp(spread * normal(call.random)) };
  };
}

/**
 * The curve as a busy machine sees it: again and again all calls of a moment, a tenth of a second, take longer together,
 * mostly by less than `meanMs`.
 */
export function stalling(curve: Curve, meanMs: number): Curve {
  const stallsMs: number[] = [];
  return (call) => {
    const moment = Math.floor(call.atMs / 100);
    while (stallsMs.length <= moment) {
      const isStalled = call.random.next() < 0.3;
      stallsMs.push(isStalled ? -Math.log(1 - call.random.next()) * meanMs : 0);
    }
    const answer = curve(call);
    return { ...answer, latencyMs: answer.latencyMs + (stallsMs[moment] ?? 0) };
  };
}

/** The curve of a store that refuses calls above so many at a time. */
export function refusingAbove(most: number, curve: Curve): Curve {
  return (call) => (call.inFlight > most ? { latencyMs: 2, sign: 'overload' } : curve(call));
}

export class Simulation {
  readonly #seconds: Second[] = [];
  readonly #options: SimulationOptions;
  readonly #random: SeededRandom;
  #events: Event[] = [];
  #nowMs = 0;
  #inFlight = 0;
  #calls = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed ?? 1);
  }

  run(): this {
    const { seconds, processes } = this.#options;
    const running = processes.map((process) => this.#begin(process));
    for (let second = 0; second < seconds; second += 1) {
      this.#at(second * 1000 + 500, () => {
        this.#second().limits = running.map(({ limit }) => limit());
      });
    }
    for (let event = this.#next(); event !== undefined && event.atMs < seconds * 1000; event = this.#next()) {
      this.#second().inFlightMs += (event.atMs - this.#nowMs) * this.#inFlight;
      this.#nowMs = event.atMs;
      event.run();
    }
    return this;
  }

  /** The store's figures from one second to another. */
  between(from: number, to: number) {
    const seconds = this.#seconds.slice(from, to);
    const sum = (of: (second: Second) => number): number => seconds.reduce((total, second) => total + of(second), 0);
    const [answered, failed] = [sum((second) => second.answered), sum((second) => second.failed)];
    const latencies = seconds.flatMap(({ latenciesMs }) => latenciesMs).toSorted((a, b) => a - b);
    return {
      perSecond: answered / (to - from),
      failedShare: failed / Math.max(1, answered + failed),
      inFlight: sum(({ inFlightMs }) => inFlightMs) / (to - from) / 1000,
      p99Ms: latencies[Math.floor(0.99 * latencies.length)] ?? 0,
      answeredFor: sum(({ answeredFor }) => answeredFor),
    };
  }

  /** The limit of that process in the middle of each second; null while it is not there. */
  limits(process = 0): readonly (number | null)[] {
    return this.#seconds.map(({ limits }) => limits[process] ?? null);
  }

  #begin({ fromMs = 0, untilMs = Infinity, perSecond, clockAheadMs = 0 }: SimulatedProcess) {
    const { max = 50 } = this.#options;
    const clock = { nowMs: () => this.#nowMs + clockAheadMs, nowMicros: () => this.#nowMs * 1000 };
    let limit: ConcurrencyLimit | null = null;
    let [waiting, inFlight] = [perSecond === undefined ? Infinity : 0, 0];
    const isThere = (): boolean => this.#nowMs < untilMs;
    const callAll = (): void => {
      if (limit === null || !isThere() || waiting === 0 || inFlight >= limit.allowed) return;
      waiting -= 1;
      inFlight += 1;
      this.#call(limit, () => {
        inFlight -= 1;
        callAll();
      });
      callAll();
    };
    const arrive = (): void => {
      if (perSecond === undefined || !isThere()) return;
      waiting = Math.min(MAX_WAITING, waiting + 1);
      callAll();
      this.#at(this.#nowMs - (Math.log(1 - this.#random.next()) * 1000) / perSecond, arrive);
    };
    this.#at(fromMs, () => {
      limit = new ConcurrencyLimit(max, clock);
      arrive();
      callAll();
    });
    return { limit: () => (limit !== null && isThere() ? limit.status().limit : null) };
  }

  #call(limit: ConcurrencyLimit, onEnd: () => void): void {
    const { curve, keys = 8, resources = ['evaluation'] } = this.#options;
    const random = this.#random;
    const [first = 'evaluation', ...others] = resources;
    const resource = random.pick(first, ...others);
    const keyId = `key-${random.integer(1, keys)}`;
    this.#inFlight += 1;
    this.#calls += 1;
    const path = `/${this.#calls}`;
    const { latencyMs, sign = 'answered' } = curve({
      inFlight: this.#inFlight,
      atMs: this.#nowMs,
      resource,
      keyId,
      random,
    });
    const call = limit.begin({ resource, keyId, path, othersWait: false });
    this.#at(this.#nowMs + latencyMs, () => {
      this.#inFlight -= 1;
      const second = this.#second();
      if (sign === 'answered') {
        second.answered += 1;
        second.latenciesMs.push(latencyMs);
      } else second.failed += 1;
      const isAnsweredFor = limit.end(call, { sign, latencyMs: sign === 'timeout' ? null : latencyMs });
      if (isAnsweredFor) second.answeredFor += 1;
      onEnd();
    });
  }

  #second(): Second {
    for (;;) {
      const second = this.#seconds[Math.floor(this.#nowMs / 1000)];
      if (second !== undefined) return second;
      this.#seconds.push({ answered: 0, failed: 0, inFlightMs: 0, latenciesMs: [], limits: [], answeredFor: 0 });
    }
  }

  /** A binary heap: the earliest event is first. */
  #at(atMs: number, run: () => void): void {
    const events = this.#events;
    let index = events.push({ atMs, run }) - 1;
    for (let parent = (index - 1) >> 1; index > 0; parent = (index - 1) >> 1) {
      if (!this.#swapIfEarlier(index, parent)) return;
      index = parent;
    }
  }

  #next(): Event | undefined {
    const events = this.#events;
    const [first] = events;
    const last = events.pop();
    if (last === undefined || events.length === 0) return first;
    events[0] = last;
    for (let index = 0; ;) {
      const left = 2 * index + 1;
      const right = left + 1;
      const earlier = (events[right]?.atMs ?? Infinity) < (events[left]?.atMs ?? Infinity) ? right : left;
      if (earlier >= events.length || !this.#swapIfEarlier(earlier, index)) return first;
      index = earlier;
    }
  }

  #swapIfEarlier(index: number, parent: number): boolean {
    const [one, other] = [this.#events[index], this.#events[parent]];
    if (one === undefined || other === undefined || other.atMs <= one.atMs) return false;
    [this.#events[index], this.#events[parent]] = [other, one];
    return true;
  }
}

/** A number of the standard normal distribution (Box and Muller). */
function normal(random: SeededRandom): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
