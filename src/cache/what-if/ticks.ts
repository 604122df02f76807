/** When simulated copies were filled: ticks of 10 ms in 32 bits, which hold ages of up to 248 days. */
import { MAX_JITTER } from '../plan.ts';
import { mix32 } from '../request.ts';

const TICK_MS = 10;
/** Added to a time it stands for no copy at all. */
const NEVER = 2 ** 31;
/** Reads may come this much out of order. */
const MAX_LATE_MS = 10_000;
const ALL_HASHES = 2 ** 32;

/** The last 32 bits of Unix time. */
export function ticksOf(timeMs: number): number {
  return Math.floor(timeMs / TICK_MS) >>> 0;
}

/** The fill of a copy that there is none of. */
export function neverAt(timeMs: number): number {
  return (ticksOf(timeMs) ^ NEVER) >>> 0;
}

/**
 * The age of a copy that was filled at those ticks. Negative if there is none, which is all that is known after a clock was set
 * back.
 */
export function ageAt(fill: number, timeMs: number): number {
  const ageMs = ((ticksOf(timeMs) - fill) | 0) * TICK_MS;
  return ageMs < -MAX_LATE_MS ? ageMs : Math.max(0, ageMs);
}

/** For how long a copy is fresh, which jitter shortens as in the cache. */
export function jitteredMs(freshMs: number, id: number, fill: number): number {
  return freshMs * (1 - MAX_JITTER * randomOf(id, fill));
}

/** A number in [0, 1) that depends on the copy alone. */
export function randomOf(id: number, fill: number): number {
  return mix32(id ^ Math.imul(fill + 1, 0x9e3779b1)) / ALL_HASHES;
}

/** Whether the key is sampled at that level: level 0 samples every key, each further one 7/8 of the one before. */
export function isSampled(id: number, level: number): boolean {
  return id < Math.floor(ALL_HASHES * sampledShare(level));
}

export function sampledShare(level: number): number {
  return (7 / 8) ** level;
}
