/** A class of keys behind a cache, read at random, with a trial that is judged as a gateway would. */
import { hash32, mix32 } from '../../src/cache/hash.ts';
import { noCounts, sumOf, total } from '../../src/cache/trial/counts.ts';
import { TrialJudge } from '../../src/cache/trial/judge.ts';
import { TrialKeys } from '../../src/cache/trial/keys.ts';
import type { Harm } from '../../src/cache/trial/verdict.ts';
import { SeededRandom } from './random.ts';
import { aTrial } from './trials.ts';

export interface Simulation {
  readonly keys: number;
  /** Of Zipf's law: the key of rank n is read in proportion to 1 / n to the power of this. */
  readonly skew: number;
  readonly readsPerSecond: number;
  readonly share: number;
  readonly freshMs: number;
  readonly controlFreshMs: number;
  /** How many calls the trial's keys make for each that they should. */
  readonly factor?: number;
  readonly forMs: number;
  readonly seed: number;
}

export interface Simulated {
  /** Null where it ran to its end. */
  readonly harm: Harm | null;
  /** After its start. */
  readonly atMs: number;
  /** Calls of the trial's keys by then. */
  readonly trialCalls: number;
}

const LOOK_EVERY_MS = 10_000;
const MOST_JITTER = 0.1;

export function simulateTrial(given: Simulation): Simulated {
  const { keys: keyCount, readsPerSecond, share, freshMs, controlFreshMs, factor = 1, forMs, seed } = given;
  const random = new SeededRandom(seed);
  const trial = aTrial({ id: `trial-${seed}`, share, freshMs, controlFreshMs, startedAtMs: 0 });
  const trialKeys = new TrialKeys(trial);
  const judge = new TrialJudge(trial, controlFreshMs);
  const hashes = Array.from({ length: keyCount }, (_, rank) => hash32(`${seed}:${rank}`));
  const pick = zipf(given, random);
  /** When each key's copy was filled; 0 where there is none. */
  const filled = new Float64Array(keyCount);
  const seenIn = new Float64Array(keyCount).fill(-1);
  const counts = noCounts();
  // Before the trial, so that it begins as it would: with copies of all ages.
  const warmMs = 2 * controlFreshMs;
  let lookAtMs = LOOK_EVERY_MS;
  for (let timeMs = -warmMs; timeMs < forMs; timeMs += 1000 / readsPerSecond) {
    const rank = pick();
    const keyHash = hashes[rank] ?? 0;
    const arm = counts.arms[trialKeys.armOf(keyHash)];
    const group = trialKeys.groupOf(keyHash);
    const isTried = timeMs >= 0 && trialKeys.has(keyHash);
    const filledAtMs = filled[rank] ?? 0;
    const jitter = 1 - (MOST_JITTER * mix32(keyHash ^ Math.floor(filledAtMs))) / 2 ** 32;
    const isFresh = filledAtMs !== 0 && timeMs - filledAtMs < (isTried ? freshMs : controlFreshMs) * jitter;
    if (!isFresh) filled[rank] = timeMs;
    if (timeMs < 0) continue;
    arm.reads[group] = (arm.reads[group] ?? 0) + 1;
    const stretch = Math.floor(timeMs / controlFreshMs);
    if (seenIn[rank] !== stretch) arm.firstReads[group] = (arm.firstReads[group] ?? 0) + 1;
    seenIn[rank] = stretch;
    if (!isFresh) arm.storeCalls[group] = (arm.storeCalls[group] ?? 0) + (isTried ? factor : 1);
    if (timeMs < lookAtMs) continue;
    lookAtMs += LOOK_EVERY_MS;
    const verdict = judge.look({ atMs: timeMs, counts: sumOf([counts]), predicted: { trial: null, control: null } });
    const trialCalls = total(counts.arms.trial.storeCalls);
    if (verdict.kind === 'harm') return { harm: verdict, atMs: timeMs, trialCalls };
  }
  return { harm: null, atMs: forMs, trialCalls: total(counts.arms.trial.storeCalls) };
}

/** Ranks from 0. */
function zipf({ keys, skew }: Simulation, random: SeededRandom): () => number {
  const upTo = new Float64Array(keys);
  let sum = 0;
  for (let rank = 0; rank < keys; rank++) {
    sum += 1 / (rank + 1) ** skew;
    upTo[rank] = sum;
  }
  return () => {
    const wanted = random.next() * sum;
    let [low, high] = [0, keys - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((upTo[middle] ?? sum) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}
