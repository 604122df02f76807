/** How often an answer had changed, by how long the copy was held that it was compared with. What is older counts less. */
import { BUCKETS, bucketOf } from './log-scale.ts';

const HALF_LIFE_MS = 86_400_000;
/** How often what is there is made to count less. */
const STEP_MS = HALF_LIFE_MS / 4;

export class ChangeTally {
  readonly #seen = new Float32Array(BUCKETS);
  readonly #changed = new Float32Array(BUCKETS);
  #steppedAtMs: number;

  constructor(atMs: number) {
    this.#steppedAtMs = atMs;
  }

  get bytes(): number {
    return this.#seen.byteLength + this.#changed.byteLength;
  }

  add(isChanged: boolean, sinceMs: number, atMs: number): void {
    this.#fade(atMs);
    const bucket = bucketOf(sinceMs);
    this.#seen[bucket] = (this.#seen[bucket] ?? 0) + 1;
    if (isChanged) this.#changed[bucket] = (this.#changed[bucket] ?? 0) + 1;
  }

  /** A bucket of the time held, how many there were, how many of them had changed. */
  rows(): [bucket: number, seen: number, changed: number][] {
    return Array.from(this.#seen, (seen, bucket): [number, number, number] => {
      return [bucket, rounded(seen), rounded(this.#changed[bucket] ?? 0)];
    }).filter(([, seen]) => seen > 0);
  }

  #fade(atMs: number): void {
    const steps = Math.floor((atMs - this.#steppedAtMs) / STEP_MS);
    if (steps < 1) return;
    this.#steppedAtMs += steps * STEP_MS;
    const factor = 0.5 ** ((steps * STEP_MS) / HALF_LIFE_MS);
    for (const counts of [this.#seen, this.#changed]) {
      for (let bucket = 0; bucket < BUCKETS; bucket++) counts[bucket] = (counts[bucket] ?? 0) * factor;
    }
  }
}

/** Four digits after the point: counts that have faded are no whole numbers. */
function rounded(count: number): number {
  return Math.round(count * 10_000) / 10_000;
}
