/**
 * The calls under one limit: those that are timed, and what all of them say of the store's load. The limit is judged by one
 * round of calls after the other (concurrency-limit.ts). Pure: times are handed in.
 */
import type { TimedCall } from './best-latency.ts';

export interface SentCall extends Omit<TimedCall, 'latencyMs'> {
  /** The address without the store's own: names the record or the list. */
  readonly path: string;
  /** Whether others wait that this limit holds back: also one key that may not have all of it makes it grow. */
  readonly othersWait: boolean;
}

/** A call that is under way. */
export interface BegunCall extends SentCall {
  readonly atMs: number;
  /** In which all calls are counted, and those that are in `timing` timed. */
  readonly round: Round;
  readonly timing: Timing | null;
}

/**
 * The latencies of the first so many calls that begin. Those that end first are the fast ones, so it is whole only when all
 * have ended, or hang: then they count with the time that they have taken so far.
 */
export interface Timing {
  readonly wanted: number;
  begun: number;
  readonly open: Set<BegunCall>;
  readonly timed: TimedCall[];
}

/** A round of calls under one limit. */
export interface Round extends Timing {
  /** How many of the calls that ended since it began each key had. */
  readonly ended: Map<string | undefined, number>;
  /** The keys that had calls in the round before. */
  readonly keysBefore: ReadonlySet<string | undefined>;
  readonly signs: SentCall[];
  most: number;
  isFull: boolean;
}

/**
 * A timing is whole when all of its calls have ended, but for a tenth that have taken eight times as long as is usual. A new
 * process makes few calls, and half of them may hang: nobody else can call meanwhile.
 */
const HANGING_SHARE = 0.1;
const HANGING_SHARE_AT_FIRST = 0.5;
const HANGING_AFTER_CALLS = 8;
/** If a store fails so often by chance, its failures are no sign. */
const CHANCE_SHARE = 0.05;

export function newTiming(wanted: number): Timing {
  return { wanted, begun: 0, open: new Set(), timed: [] };
}

/** `isNew`: the store has not been found to bear no more. `typicalMs`: what a call takes; 0 if that is not known. */
export interface Now {
  readonly isNew: boolean;
  readonly typicalMs: number;
  readonly nowMs: number;
}

/** Whether the calls that were to be timed have ended, or hang. */
export function isWhole({ begun, wanted, open, timed }: Timing, { isNew, typicalMs, nowMs }: Now): boolean {
  if (begun < wanted) return false;
  if (open.size === 0) return true;
  if (timed.length === 0 || open.size > begun * (isNew ? HANGING_SHARE_AT_FIRST : HANGING_SHARE)) return false;
  const usualMs = typicalMs || Math.max(...timed.map(({ latencyMs }) => latencyMs));
  return [...open].every(({ atMs }) => nowMs - atMs > HANGING_AFTER_CALLS * usualMs);
}

export function isHalfWhole({ begun, wanted, open }: Timing): boolean {
  return begun >= wanted && open.size <= begun / 2;
}

export function timesOf({ timed, open }: Timing, nowMs: number): readonly TimedCall[] {
  return [...timed, ...[...open].map((call) => ({ ...call, latencyMs: nowMs - call.atMs }))];
}

/** Several records of several keys: the trouble of one record or of one key is not the store's, unless nobody else calls it. */
export function touchesSeveral({ signs, ended, keysBefore }: Round): boolean {
  const [keys, paths] = [new Set(signs.map(({ keyId }) => keyId)), new Set(signs.map(({ path }) => path))];
  const isAlone = new Set([...ended.keys(), ...keysBefore]).size === 1;
  return paths.size > 1 && (keys.size > 1 || isAlone);
}

/** Whether there are more signs than chance brings. */
export function isOverload(round: Round): boolean {
  const { signs, ended } = round;
  const calls = [...ended.values()].reduce((sum, count) => sum + count, 0);
  const certain = signs.length - 2 * Math.sqrt(signs.length);
  return certain > CHANCE_SHARE * calls && touchesSeveral(round);
}
