/**
 * The one queue of everything that happens in a simulated fleet, in the order of its time, and among equals in that of its
 * planning. An event runs with all that follows from it at once before the next one begins, so a run depends on its seed alone.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

interface Planned {
  readonly atMs: number;
  readonly order: number;
  /** Null for what is no process of ours, such as Redis. */
  readonly process: SimulatedProcess | null;
  readonly run: () => void;
  /** Whether it is a timer of the process; else something arrives there. */
  readonly isTimer: boolean;
  isCancelled: boolean;
}

/** The time at which each simulation begins: 2026-01-15, 12:00 UTC. */
export const START_MS = Date.UTC(2026, 0, 15, 12);
const realImmediate = setImmediate;
/** More events in a millisecond are a loop that never ends. */
const MOST_AT_ONCE = 20_000;

/** One process of the fleet: it runs, is paused, or has been killed. */
export class SimulatedProcess {
  readonly name: string;
  readonly startedAtMs: number;
  /** By how much its wall clock is ahead of the true time. */
  aheadMs: number;
  state: 'running' | 'paused' | 'killed' = 'running';
  /** All that has come while it was paused. */
  readonly held: Pick<Planned, 'run' | 'isTimer' | 'isCancelled'>[] = [];

  constructor(name: string, startedAtMs: number, aheadMs: number) {
    this.name = name;
    this.startedAtMs = startedAtMs;
    this.aheadMs = aheadMs;
  }
}

export class Schedule {
  #nowMs = START_MS;
  #planned = 0;
  /** A heap: no event is earlier than its parent, whose place is half of its own. */
  readonly #heap: Planned[] = [];
  readonly #context = new AsyncLocalStorage<SimulatedProcess>();
  /** `setImmediate` calls that are yet to come. */
  #immediates = 0;
  #atOnce = 0;

  /** The true time, Unix milliseconds with fractions. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** The process whose code runs now; undefined for code that is no part of the fleet. */
  current(): SimulatedProcess | undefined {
    return this.#context.getStore();
  }

  /** Returns a function that cancels it. */
  after(delayMs: number, process: SimulatedProcess | null, run: () => void, isTimer = false): () => void {
    return this.at(this.#nowMs + Math.max(0, delayMs), process, run, isTimer);
  }

  at(atMs: number, process: SimulatedProcess | null, run: () => void, isTimer = false): () => void {
    this.#planned += 1;
    const planned: Planned = { atMs, order: this.#planned, process, run, isTimer, isCancelled: false };
    this.#add(planned);
    return () => {
      planned.isCancelled = true;
    };
  }

  noteImmediate(): () => void {
    this.#immediates += 1;
    return () => {
      this.#immediates -= 1;
    };
  }

  /** Runs all that is planned up to then. */
  async runUntil(untilMs: number): Promise<void> {
    for (;;) {
      const next = this.#heap[1] ?? null;
      if (next === null || next.atMs > untilMs) break;
      this.#takeFirst();
      if (next.isCancelled) continue;
      this.#atOnce = next.atMs > this.#nowMs ? 0 : this.#atOnce + 1;
      if (this.#atOnce > MOST_AT_ONCE) throw new Error(`events follow each other without end at ${next.atMs}`);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      await this.#run(next);
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /**
   * A paused process goes on as Node does: in one turn of the event loop first all timers that are due, then all that has arrived,
   * and then what `setImmediate` has put off until after that.
   */
  resume(process: SimulatedProcess): void {
    if (process.state !== 'paused') return;
    process.state = 'running';
    const held = process.held.splice(0);
    const inOrder = [...held.filter(({ isTimer }) => isTimer), ...held.filter(({ isTimer }) => !isTimer)];
    this.after(0, process, () => {
      for (const one of inOrder) {
        const noteRun = this.noteImmediate();
        realImmediate(() => {
          noteRun();
          if (!one.isCancelled) one.run();
        });
      }
    });
  }

  async #run(planned: Planned): Promise<void> {
    const { process, run } = planned;
    if (process === null) return run();
    if (process.state === 'killed') return;
    if (process.state === 'paused') process.held.push(planned);
    else {
      this.#context.run(process, run);
      await this.#settle();
    }
  }

  /** Resolves once nothing is left that waits only for another turn of the event loop. */
  async #settle(): Promise<void> {
    do await new Promise<void>((resolve) => realImmediate(resolve));
    while (this.#immediates > 0);
  }

  #add(planned: Planned): void {
    const heap = this.#heap;
    if (heap.length === 0) heap.push(planned);
    let place = heap.length;
    heap.push(planned);
    for (let parent = place >> 1; parent > 0; parent = place >> 1) {
      const above = heap[parent];
      if (above === undefined || isBefore(above, planned)) break;
      heap[place] = above;
      place = parent;
    }
    heap[place] = planned;
  }

  #takeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length <= 1) return;
    let place = 1;
    for (;;) {
      let child = 2 * place;
      const [left, right] = [heap[child], heap[child + 1]];
      if (left === undefined) break;
      if (right !== undefined && isBefore(right, left)) child += 1;
      const lesser = heap[child];
      if (lesser === undefined || isBefore(last, lesser)) break;
      heap[place] = lesser;
      place = child;
    }
    heap[place] = last;
  }
}

function isBefore(one: Planned, other: Planned): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}
