/**
 * How long the store's answers take while it has little to do, per resource (a list is slower than an evaluation), and by
 * how much those of now are slower. Pure: calls and times are handed in.
 *
 * Latencies are compared as logarithms: twice as slow is as far from normal for a fast call as for a slow one, and a few very
 * slow calls, which every store has, do not hide the others. Each best latency is an estimate with an uncertainty, as a Kalman
 * filter in one dimension has it: a measurement of many even calls moves it far, one of few uneven calls a little, and the
 * longer ago the last one was, the less the estimate is trusted.
 */
import type { ResourceKind } from './resources.ts';

/** A call whose status and headers have come. */
export interface TimedCall {
  readonly resource: ResourceKind;
  /** The API key that caused it; undefined for none. */
  readonly keyId: string | undefined;
  /** From sending it to its status and headers. */
  readonly latencyMs: number;
}

/** As logarithms. */
export interface Slowness {
  readonly mean: number;
  /** Its standard deviation. */
  readonly error: number;
}

interface Best {
  /** The logarithm of milliseconds. */
  readonly mean: number;
  /** It is known as well as from so many calls of one moment. */
  readonly calls: number;
  readonly atMs: number;
  /** Whether it was measured while the store was spared, and not only when this process was new. */
  readonly isMeasured: boolean;
}

/** One call counts as no more than eight times slower than it should be. */
const MOST_SLOWNESS = Math.log(8);
/** How much the store's own pace may change: so much variance per second. */
const DRIFT_PER_SECOND = 0.0004;
/** However long ago it was measured, and from however few calls, no best latency counts as less certain than that. */
const MOST_DRIFT = 0.05;
const MOST_VARIANCE = 0.15;
/** Before anything is known of a store, its latencies vary by some 40 %, as if so many calls had shown it. */
const FIRST_SPREAD = 0.16;
const FIRST_CALLS = 3;
/** The last so many calls show how much latencies vary. */
const SPREAD_CALLS = 500;
/** Calls that agree to the last digit are no proof either. */
const LEAST_NOISE = 1e-4;
const NO_CHANCE = 2;
/** The number beyond which the store has certainly changed: then only the new measurement counts. */
const CERTAIN = 3;

export class BestLatency {
  readonly #best = new Map<ResourceKind, Best>();
  #spread = FIRST_SPREAD;
  #spreadCalls = FIRST_CALLS;
  #typicalMs = 0;

  /** The present latency of a call. */
  get typicalMs(): number {
    return this.#typicalMs;
  }

  /** Whether the store has been measured while it was spared. */
  get isMeasured(): boolean {
    return [...this.#best.values()].some(({ isMeasured }) => isMeasured);
  }

  /**
   * By how much the calls are slower than the best ones, without the key whose calls are slowest, if others call too.
   */
  slownessOf(calls: readonly TimedCall[], nowMs: number): Slowness {
    for (const [resource, logs] of byResource(calls)) {
      const mean = meanOf(logs);
      if (!this.#best.has(resource))
        this.#best.set(resource, { mean, calls: logs.length, atMs: nowMs, isMeasured: false });
    }
    this.#typicalMs = Math.exp(meanOf(calls.map(({ latencyMs }) => logOf(latencyMs))));
    const kept = withoutSlowestKey(
      calls.map(({ resource, keyId, latencyMs }) => {
        const slowness = logOf(latencyMs) - (this.#best.get(resource)?.mean ?? 0);
        return { keyId, slowness: Math.max(-MOST_SLOWNESS, Math.min(MOST_SLOWNESS, slowness)) };
      }),
    );
    const mean = meanOf(kept.map(({ slowness }) => slowness));
    this.#noteSpread(kept.map(({ slowness }) => slowness - mean));
    const variances = calls.map(({ resource }) => this.#varianceOf(this.#best.get(resource), nowMs));
    return { mean, error: Math.sqrt(this.#spread / kept.length + Math.max(...variances)) };
  }

  /**
   * Takes over what calls took while the store was spared. Returns by how much the best latency of a resource is more than
   * was thought: so much of the slowness was none.
   */
  measure(calls: readonly TimedCall[], nowMs: number): number {
    let more = 0;
    for (const [resource, logs] of byResource(calls)) {
      const before = this.#best.get(resource)?.mean;
      this.#learn(resource, logs, nowMs, true);
      if (before !== undefined) more = Math.max(more, (this.#best.get(resource)?.mean ?? 0) - before);
    }
    return more;
  }

  /** Takes over what calls took at any other time, if it is less, and that is no chance: the store has become faster. */
  improve(calls: readonly TimedCall[], nowMs: number): void {
    for (const [resource, logs] of byResource(calls)) {
      const best = this.#best.get(resource);
      const doubt = Math.sqrt(this.#varianceOf(best, nowMs) + this.#noiseOf(logs));
      if (best !== undefined && meanOf(logs) < best.mean - NO_CHANCE * doubt) this.#learn(resource, logs, nowMs);
    }
  }

  /** Takes over what the first calls of a new process took, whether it is less or more. */
  learnFirst(calls: readonly TimedCall[], nowMs: number): void {
    for (const [resource, logs] of byResource(calls)) this.#learn(resource, logs, nowMs);
  }

  #learn(resource: ResourceKind, logs: readonly number[], nowMs: number, isMeasured = false): void {
    const best = this.#best.get(resource);
    const [variance, noise] = [this.#varianceOf(best, nowMs), this.#noiseOf(logs)];
    const off = meanOf(logs) - (best?.mean ?? 0);
    const isCertain = best === undefined || off ** 2 > CERTAIN ** 2 * (variance + noise);
    const weight = isCertain ? 1 : variance / (variance + noise);
    this.#best.set(resource, {
      mean: (best?.mean ?? 0) + weight * off,
      calls: isCertain ? logs.length : Math.min(SPREAD_CALLS, (this.#spread + LEAST_NOISE) / ((1 - weight) * variance)),
      atMs: nowMs,
      isMeasured: isMeasured || best?.isMeasured === true,
    });
  }

  #varianceOf(best: Best | undefined, nowMs: number): number {
    if (best === undefined) return 0;
    const drift = Math.min(MOST_DRIFT, (DRIFT_PER_SECOND * Math.max(0, nowMs - best.atMs)) / 1000);
    return Math.min(MOST_VARIANCE, this.#spread / best.calls + LEAST_NOISE + drift);
  }

  /** The variance of the mean of so many calls. */
  #noiseOf(logs: readonly number[]): number {
    return this.#spread / logs.length + LEAST_NOISE;
  }

  /** How far calls of one moment lie from their mean. */
  #noteSpread(deviations: readonly number[]): void {
    const squares = deviations.reduce((sum, deviation) => sum + deviation ** 2, 0);
    const variance = squares / Math.max(1, deviations.length - 1);
    const calls = this.#spreadCalls + deviations.length;
    this.#spread = (this.#spread * this.#spreadCalls + variance * deviations.length) / calls;
    this.#spreadCalls = Math.min(SPREAD_CALLS, calls);
  }
}

function logOf(latencyMs: number): number {
  return Math.log(Math.max(0.1, latencyMs));
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function byResource(calls: readonly TimedCall[]): ReadonlyMap<ResourceKind, readonly number[]> {
  const logs = new Map<ResourceKind, number[]>();
  for (const { resource, latencyMs } of calls) {
    const known = logs.get(resource);
    if (known === undefined) logs.set(resource, [logOf(latencyMs)]);
    else known.push(logOf(latencyMs));
  }
  return logs;
}

interface Compared {
  readonly keyId: string | undefined;
  readonly slowness: number;
}

/** The trouble of one key is not the store's, unless nobody else calls it. */
function withoutSlowestKey(calls: readonly Compared[]): readonly Compared[] {
  const sums = new Map<string | undefined, number>();
  for (const { keyId, slowness } of calls) sums.set(keyId, (sums.get(keyId) ?? 0) + slowness);
  const [slowest, second] = [...sums].toSorted(([, one], [, other]) => other - one);
  if (slowest === undefined || second === undefined) return calls;
  return calls.filter(({ keyId }) => keyId !== slowest[0]);
}
