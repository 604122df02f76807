/**
 * One class's keys and what the ghosts do with them. As long as there is room every key is followed. Then the busiest
 * are, exactly (heads), and of the others a sample by their hash (Waldspurger and others, SHARDS, 2015), which stands for
 * all of them: how many reads they have in all is known.
 *
 * Whether a key becomes a head never depends on whether it is sampled, or the sample would not stand for the rest.
 */
import type { CacheTtl } from '../ttl-policy.ts';
import { CANDIDATE_FRESH_MS, IN_FORCE } from './candidates.ts';
import type { FrequencySketch } from './frequency-sketch.ts';
import { Ghosts } from './ghosts.ts';
import { Heads } from './heads.ts';
import { Sample } from './sample.ts';
import { placeOf, type SlotPool } from './slot-pool.ts';
import type { PointSnapshot } from './snapshot.ts';
import { type ReadKind, Tally } from './tally.ts';

const DAY_MS = 86_400_000;
/** Twelve hours each: after so many, each ghost has forgotten what it can't have known. */
const TURNS_TO_KNOW = 2;

/** What all classes share. */
export interface Shared {
  readonly pool: SlotPool;
  readonly sketch: () => FrequencySketch;
  /** Frees some slots, maybe at the cost of the class that asks. */
  makeRoom(atMs: number): void;
}

export class ClassWatch {
  readonly #owner: number;
  readonly #shared: Shared;
  readonly #ghosts = new Ghosts();
  readonly #heads: Heads;
  readonly #startedMs: number;
  readonly #candidates: Tally;
  #inForce: Tally;
  #staleMs = 0;
  readonly #sample = new Sample();
  #sampled = 0;
  #random: number;

  constructor(owner: number, shared: Shared, atMs: number) {
    this.#owner = owner;
    this.#shared = shared;
    this.#heads = new Heads(shared.pool);
    this.#startedMs = atMs;
    this.#random = owner;
    for (const [ghost, freshMs] of CANDIDATE_FRESH_MS.entries()) this.#ghosts.set(ghost, freshMs);
    this.#candidates = new Tally(CANDIDATE_FRESH_MS.length, atMs);
    this.#inForce = new Tally(1, atMs);
  }

  /** How many keys are followed that are no heads. */
  get sampled(): number {
    return this.#sampled;
  }

  get bytes(): number {
    return this.#heads.bytes + this.#candidates.bytes + this.#inForce.bytes;
  }

  /** `hash` is spread evenly; `times` are those in force. */
  read(hash: number, atMs: number, times: CacheTtl): void {
    this.#turn(atMs, times);
    const { pool } = this.#shared;
    const known = pool.find(this.#owner, hash);
    const slot = known < 0 ? this.#follow(hash, atMs) : known;
    if (slot < 0) {
      this.#count('unsampled');
      this.#consider(hash, slot, atMs);
      return;
    }
    const block = pool.blockOf(slot);
    const place = placeOf(slot);
    if (known < 0) this.#ghosts.fill(block, place, atMs);
    else this.#ghosts.play(block, place, { atMs, staleMs: times.staleMs });
    const isExact = this.#sample.isWhole || block.heads[place] === 1;
    if (isExact) block.counts[place] = Math.min(0xffff, (block.counts[place] ?? 0) + 1);
    this.#count(isExact ? 'exact' : this.#sample.counts(hash) ? 'sampled' : 'unsampled');
    if (!isExact) this.#consider(hash, slot, atMs);
  }

  /** Gives up part of the sample. */
  shrink(): void {
    if (this.#sample.isWhole) {
      const before = this.#heads.size;
      this.#heads.choose(this.#owner);
      this.#sampled -= this.#heads.size - before;
    }
    const before = this.#sampled;
    while (this.#sampled > 0 && this.#sampled === before) {
      this.#sample.narrow();
      this.#release((hash) => !this.#sample.follows(hash));
    }
  }

  /** Forgets sampled keys that were not read for so long that no ghost has a copy of use: they are as if new. */
  forgetIdle(atMs: number): void {
    const idleMs = Math.max(DAY_MS, this.#freshMs) + this.#staleMs;
    this.#release((_, block, place) => this.#ghosts.idleMs(block, place, atMs) > idleMs);
  }

  /** What each ghost did; `epochMs` is what the times given are counted from. */
  points(epochMs: number): readonly PointSnapshot[] {
    return Array.from(this.#ghosts.freshMs, (freshMs, ghost) => ({ freshMs, ghost }))
      .filter(({ freshMs, ghost }) => ghost !== IN_FORCE || !CANDIDATE_FRESH_MS.includes(freshMs))
      .map(({ freshMs, ghost }) => ({
        freshMs,
        ...(ghost === IN_FORCE ? this.#inForce.point(0, epochMs) : this.#candidates.point(ghost, epochMs)),
      }));
  }

  #release(isGone: (hash: number, block: ReturnType<SlotPool['blockOf']>, place: number) => boolean): void {
    const { pool } = this.#shared;
    pool.each((slot, block, place) => {
      if (block.owners[place] !== this.#owner || block.heads[place] === 1) return;
      if (!isGone(block.hashes[place] ?? 0, block, place)) return;
      pool.release(slot);
      this.#sampled -= 1;
    });
  }

  #turn(atMs: number, { freshMs, staleMs }: CacheTtl): void {
    this.#staleMs = staleMs;
    if (this.#candidates.turn(atMs)) this.#widen(atMs);
    if (freshMs === this.#freshMs) {
      this.#inForce.turn(atMs);
      return;
    }
    this.#shared.pool.each((_, block, place) => {
      if (block.owners[place] === this.#owner) {
        this.#ghosts.convert(block, place, { ghost: IN_FORCE, atMs, freshMs });
      }
    });
    this.#ghosts.set(IN_FORCE, freshMs);
    this.#inForce = new Tally(1, atMs);
  }

  /** Where keys have become few again, more of them can be followed. */
  #widen(atMs: number): void {
    this.#sample.turn();
    if (this.#sample.isWhole) return;
    this.forgetIdle(atMs);
    const { free, size } = this.#shared.pool;
    // Half of what is free: other classes may want some too.
    if (free >= size / 2) this.#sample.widen(1 + free / 2 / Math.max(1, this.#sampled), TURNS_TO_KNOW);
  }

  #follow(hash: number, atMs: number): number {
    if (!this.#sample.follows(hash)) return -1;
    const { pool } = this.#shared;
    if (pool.free === 0) this.#shared.makeRoom(atMs);
    if (!this.#sample.follows(hash)) return -1;
    const slot = pool.take(this.#owner, hash);
    if (slot >= 0) this.#sampled += 1;
    return slot;
  }

  #count(kind: ReadKind): void {
    const weight = kind === 'sampled' ? this.#sample.weight : 1;
    this.#candidates.count(kind, weight);
    this.#inForce.count(kind, weight);
    if (kind === 'unsampled') return;
    const wholeWeight = kind === 'exact' ? 1 : Math.floor(weight + this.#nextRandom());
    this.#candidates.add(this.#ghosts, 0, { kind, weight, wholeWeight });
    this.#inForce.add(this.#ghosts, IN_FORCE, { kind, weight, wholeWeight });
  }

  /** Makes a key a head that has become busier than one of them. */
  #consider(hash: number, known: number, atMs: number): void {
    const { pool } = this.#shared;
    const sketch = this.#shared.sketch();
    const reads = sketch.add(hash, atMs);
    if (!this.#heads.isOutdoneBy(reads)) return;
    if (this.#heads.isFull) this.#dismiss();
    let slot = known;
    if (slot < 0) {
      if (pool.free === 0) this.#shared.makeRoom(atMs);
      slot = pool.take(this.#owner, hash);
      if (slot < 0) return;
      const pace = { atMs, readsPerMs: sketch.rateOf(reads, atMs), watchedMs: atMs - this.#startedMs };
      this.#ghosts.guess(pool.blockOf(slot), placeOf(slot), pace, () => this.#nextRandom());
    } else {
      this.#sampled -= 1;
    }
    pool.blockOf(slot).counts[placeOf(slot)] = reads;
    this.#heads.add(slot);
  }

  #dismiss(): void {
    const { pool } = this.#shared;
    const slot = this.#heads.dismiss();
    if (this.#sample.follows(pool.blockOf(slot).hashes[placeOf(slot)] ?? 0)) this.#sampled += 1;
    else pool.release(slot);
  }

  /** In force as far as is known here. */
  get #freshMs(): number {
    return this.#ghosts.freshMs[IN_FORCE] ?? 0;
  }

  #nextRandom(): number {
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#random / 2 ** 32;
  }
}
