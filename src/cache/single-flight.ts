/** One flight a key in this process: whoever comes while it is under way waits for it. */
import type { Clock } from '../clock.ts';

export interface Flight<T> {
  readonly landing: Promise<T>;
  /** Whether this call began it. */
  readonly isLed: boolean;
  /** When it began, Unix milliseconds. */
  readonly startedAtMs: number;
}

interface Failure<T> {
  readonly flight: Flight<T>;
  readonly atMs: number;
}

export class SingleFlight<T> {
  readonly #clock: Clock;
  readonly #rememberFailuresMs: number;
  readonly #underWay = new Map<string, Flight<T>>();
  /** In order of time. */
  readonly #failures = new Map<string, Failure<T>>();

  constructor(clock: Clock, rememberFailuresMs: number) {
    this.#clock = clock;
    this.#rememberFailuresMs = rememberFailuresMs;
  }

  /**
   * Joins the key's flight, or begins it by calling `fly`. A flight belongs to nobody: a caller that leaves aborts
   * nothing. A failure reaches all who wait at once, and for a while all who come after, instead of each trying anew.
   */
  join(key: string, fly: () => Promise<T>): Flight<T> {
    const known = this.#underWay.get(key) ?? this.#lastFailure(key);
    if (known !== undefined) return { ...known, isLed: false };
    const flight = { landing: this.#begin(key, fly), isLed: true, startedAtMs: this.#clock.nowMs() };
    this.#underWay.set(key, flight);
    return flight;
  }

  async #begin(key: string, fly: () => Promise<T>): Promise<T> {
    // Not before the flight is known to others: `fly` could end at once.
    await Promise.resolve();
    try {
      return await fly();
    } catch (error) {
      this.#remember(key);
      throw error;
    } finally {
      this.#underWay.delete(key);
    }
  }

  #lastFailure(key: string): Flight<T> | undefined {
    const failure = this.#failures.get(key);
    return failure !== undefined && this.#isRemembered(failure) ? failure.flight : undefined;
  }

  #remember(key: string): void {
    const flight = this.#underWay.get(key);
    if (flight === undefined) return;
    this.#failures.delete(key);
    this.#failures.set(key, { flight, atMs: this.#clock.nowMs() });
    for (const [oldKey, old] of this.#failures) {
      if (this.#isRemembered(old)) break;
      this.#failures.delete(oldKey);
    }
  }

  #isRemembered({ atMs }: Failure<T>): boolean {
    return this.#clock.nowMs() - atMs < this.#rememberFailuresMs;
  }
}
