/**
 * How far V8 lets its heap grow before it collects all of it. What the process may take and doesn't, mostly since the
 * memory tier isn't full, is lent to it while it collects often: reads that wait for the store get old, so that an overload
 * made it collect all once a second, for longer than a cached read takes in all.
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { type Clock, systemClock } from './clock.ts';

/** As `engine.js` sets it at the start. */
const LEAST_GROWTH_PERCENT = 15;
const MOST_GROWTH_PERCENT = 100;
/** A process may take 130 MB beside its memory tier. The rest is for the growth that it always has, and what stays of it. */
const BESIDE_MEMORY_TIER_BYTES = 100e6;
/** Who collects less often than this has nothing to gain. */
const OFTEN_MS = 5000;

/** A full collection. */
export interface Collected {
  /** Since the full collection before this one. */
  readonly sinceLastMs: number;
  /** What the process has now, and what it may have. */
  readonly residentBytes: number;
  readonly allowedBytes: number;
  /** What is in V8's heap. */
  readonly heapBytes: number;
}

/** By how many percent the heap may grow before the next full collection. */
export function growthPercent({ sinceLastMs, residentBytes, allowedBytes, heapBytes }: Collected): number {
  const roomPercent = sinceLastMs < OFTEN_MS ? (100 * Math.max(0, allowedBytes - residentBytes)) / heapBytes : 0;
  return Math.min(MOST_GROWTH_PERCENT, Math.round(LEAST_GROWTH_PERCENT + roomPercent));
}

interface Machine {
  readonly clock: Pick<Clock, 'nowMicros'>;
  readonly residentBytes: () => number;
  readonly heapBytes: () => number;
  readonly setGrowthPercent: (percent: number) => void;
}

const thisProcess: Machine = {
  clock: systemClock,
  residentBytes: () => process.memoryUsage.rss(),
  heapBytes: () => getHeapStatistics().used_heap_size,
  // V8 reads it at the end of each full collection.
  setGrowthPercent: (percent) => setFlagsFromString(`--heap-growing-percent=${percent}`),
};

/** Nobody else holds them, and what is not held is collected itself. */
const inForce = new Set<HeapRoom>();

/**
 * From now on the heap of this process grows as far as there is room: 100 MB and the memory tier's limit, as resident
 * memory, less what it takes already.
 */
export function lendHeapRoom(memoryTierBytes: number, machine: Machine = thisProcess): void {
  inForce.add(new HeapRoom(BESIDE_MEMORY_TIER_BYTES + memoryTierBytes, machine));
}

/** Looks after each full collection. */
class HeapRoom {
  readonly #allowedBytes: number;
  readonly #machine: Machine;
  /** Told only of what a full collection has found: to be told of all of them would cost a cached read some percent. */
  readonly #collected = new FinalizationRegistry<null>(() => this.#look());
  #lastMs: number;

  constructor(allowedBytes: number, machine: Machine) {
    this.#allowedBytes = allowedBytes;
    this.#machine = machine;
    this.#lastMs = this.#nowMs();
    this.#awaitNext();
  }

  #awaitNext(): void {
    this.#collected.register({}, null);
  }

  #look(): void {
    const { residentBytes, heapBytes, setGrowthPercent } = this.#machine;
    const nowMs = this.#nowMs();
    const collected = {
      sinceLastMs: nowMs - this.#lastMs,
      residentBytes: residentBytes(),
      allowedBytes: this.#allowedBytes,
      heapBytes: heapBytes(),
    };
    this.#lastMs = nowMs;
    setGrowthPercent(growthPercent(collected));
    this.#awaitNext();
  }

  #nowMs(): number {
    return this.#machine.clock.nowMicros() / 1000;
  }
}
