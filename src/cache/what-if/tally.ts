/**
 * What ghosts did, counted over the last day: in three parts of twelve hours, of which the last is under way, so that it
 * is the last 24 to 36 hours once there were so many. Ages are weighed instead: each twelve hours count half of the next.
 */
import { BUCKETS, bucketOf } from './log-scale.ts';
import type { PointSnapshot } from './snapshot.ts';

const PART_MS = 12 * 3_600_000;
const PARTS = 3;
/** What a whole is divided into, to travel. */
const SHARES = 10_000;

/**
 * Reads of which kind: `exact` of a key whose every read is followed; `sampled` and `unsampled` of the others, whose
 * sampled keys stand for all.
 */
export type ReadKind = 'exact' | 'sampled' | 'unsampled';

interface Part {
  readonly sinceMs: number;
  exactReads: number;
  /** Of keys that are sampled or might have been: all of them. */
  otherReads: number;
  /** Of sampled keys, each for as many as it stands for at that time. */
  sampledReads: number;
  readonly exactCalls: Float64Array;
  readonly sampledCalls: Float64Array;
}

export class Tally {
  readonly #ghosts: number;
  readonly #startedMs: number;
  #parts: readonly Part[];
  #part: Part;
  readonly #ages: Uint32Array;

  constructor(ghosts: number, startedMs: number) {
    this.#ghosts = ghosts;
    this.#startedMs = startedMs;
    this.#part = createPart(ghosts, startedMs);
    this.#parts = [this.#part];
    this.#ages = new Uint32Array(ghosts * BUCKETS);
  }

  get bytes(): number {
    return this.#ages.byteLength + PARTS * this.#ghosts * 16;
  }

  /** Brings the parts up to date. True where a new one has begun. */
  turn(atMs: number): boolean {
    const passed = Math.floor((atMs - this.#part.sinceMs) / PART_MS);
    if (passed < 1) return false;
    this.#part = createPart(this.#ghosts, this.#part.sinceMs + passed * PART_MS);
    const keptSinceMs = this.#part.sinceMs - (PARTS - 1) * PART_MS;
    this.#parts = [...this.#parts.filter(({ sinceMs }) => sinceMs >= keptSinceMs), this.#part];
    // Rounded up: what a class of few reads has seen must not vanish.
    for (let at = 0; at < this.#ages.length; at++) this.#ages[at] = Math.ceil((this.#ages[at] ?? 0) / 2 ** passed);
    return true;
  }

  count(kind: ReadKind, weight: number): void {
    if (kind === 'exact') this.#part.exactReads += 1;
    else this.#part.otherReads += 1;
    if (kind === 'sampled') this.#part.sampledReads += weight;
  }

  /** What the ghosts did at a read that is `exact` or `sampled`: theirs begin at `first` of the arrays. */
  add({ calls, agesMs }: Deeds, first: number, { kind, weight, wholeWeight }: Weight): void {
    const sums = kind === 'exact' ? this.#part.exactCalls : this.#part.sampledCalls;
    for (let ghost = 0; ghost < this.#ghosts; ghost++) {
      if (calls[first + ghost] === 1) sums[ghost] = (sums[ghost] ?? 0) + weight;
      const at = ghost * BUCKETS + bucketOf(agesMs[first + ghost] ?? 0);
      this.#ages[at] = (this.#ages[at] ?? 0) + wholeWeight;
    }
  }

  /** Of one ghost; times are counted from `epochMs`. */
  point(ghost: number, epochMs: number): Omit<PointSnapshot, 'freshMs'> {
    const reads = this.#parts.reduce((sum, { exactReads, otherReads }) => sum + exactReads + otherReads, 0);
    const sinceMs = this.#parts[0]?.sinceMs ?? this.#startedMs;
    const about = { startedMs: epochMs + this.#startedMs, sinceMs: epochMs + sinceMs };
    return { ...about, reads, calls: this.#callsOf(ghost), ...this.#sharesOf(ghost) };
  }

  /** Ages of the answers served, without the empty buckets at both ends. */
  #sharesOf(ghost: number): Pick<PointSnapshot, 'firstAge' | 'ages'> {
    const counts = this.#ages.subarray(ghost * BUCKETS, (ghost + 1) * BUCKETS);
    const whole = counts.reduce((sum, count) => sum + count, 0);
    const shares = Array.from(counts, (count) => Math.round((SHARES * count) / Math.max(1, whole)));
    const first = shares.findIndex((share) => share > 0);
    const end = shares.findLastIndex((share) => share > 0) + 1;
    return { firstAge: Math.max(0, first), ages: shares.slice(Math.max(0, first), end) };
  }

  #callsOf(ghost: number): number {
    const whole = ratioOf(this.#parts, ghost, 1);
    return this.#parts.reduce((sum, part) => {
      return sum + (part.exactCalls[ghost] ?? 0) + part.otherReads * ratioOf([part], ghost, whole);
    }, 0);
  }
}

/** The share of sampled reads that are calls to the store; where there were none, what is given. */
function ratioOf(parts: readonly Part[], ghost: number, otherwise: number): number {
  const reads = parts.reduce((sum, part) => sum + part.sampledReads, 0);
  const calls = parts.reduce((sum, part) => sum + (part.sampledCalls[ghost] ?? 0), 0);
  return reads === 0 ? otherwise : calls / reads;
}

interface Deeds {
  readonly calls: Uint8Array;
  readonly agesMs: Float64Array;
}

interface Weight {
  readonly kind: Exclude<ReadKind, 'unsampled'>;
  /** How many reads this one stands for. */
  readonly weight: number;
  /** The same as a whole number that is right on average. */
  readonly wholeWeight: number;
}

function createPart(ghosts: number, sinceMs: number): Part {
  return {
    sinceMs,
    exactReads: 0,
    otherReads: 0,
    sampledReads: 0,
    exactCalls: new Float64Array(ghosts),
    sampledCalls: new Float64Array(ghosts),
  };
}
