/** One flight per key in this process: a caller that comes while it is under way waits for it. */
import type { Clock } from '../clock.ts';

export interface Flight<T> {
  readonly result: Promise<T>;
  /** Whether this call began it. */
  readonly isLed: boolean;
  /** When it began, Unix milliseconds. */
  readonly startedAtMs: number;
}

/** Whether a caller still waits. */
type IsWaiting = () => boolean;

interface UnderWay<T> {
  readonly flight: Flight<T>;
  readonly waiters: IsWaiting[];
}

interface Failure<T> {
  readonly flight: Flight<T>;
  readonly atMs: number;
}

export interface SingleFlightOptions {
  readonly clock: Clock;
  /** For so long callers get the failure of the last flight instead of trying anew. */
  readonly rememberFailuresMs: number;
  /** Whether a failure means that trying again soon is of no use. */
  readonly isToRemember: (error: unknown) => boolean;
}

export class SingleFlight<T> {
  readonly #options: SingleFlightOptions;
  readonly #underWay = new Map<string, UnderWay<T>>();
  /** In order of time. */
  readonly #failures = new Map<string, Failure<T>>();

  constructor(options: SingleFlightOptions) {
    this.#options = options;
  }

  /** When the key's flight that is under way began, Unix milliseconds; null if there is none. */
  underWaySinceMs(key: string): number | null {
    return this.#underWay.get(key)?.flight.startedAtMs ?? null;
  }

  /** Whether a flight has just failed whose key begins so: a caller that comes now gets its failure. Looks at all of them. */
  hasJustFailed(prefix: string): boolean {
    return [...this.#failures.keys()].some((key) => key.startsWith(prefix) && this.#lastFailure(key) !== undefined);
  }

  /**
   * Joins the key's flight, or begins it by calling `fly`. A flight belongs to nobody: a caller that leaves aborts
   * nothing. A failure reaches all who wait at once, and for a while all who come after. `fly` may ask whether anyone
   * still waits: once nobody does, nobody joins the flight any more, and it has to end.
   */
  join(key: string, fly: (isWanted: () => boolean) => Promise<T>, isWaiting: IsWaiting = always): Flight<T> {
    const underWay = this.#underWay.get(key);
    underWay?.waiters.push(isWaiting);
    const known = underWay?.flight ?? this.#lastFailure(key);
    if (known !== undefined) return { ...known, isLed: false };
    const waiters = [isWaiting];
    const flight = { result: this.#run(key, waiters, fly), isLed: true, startedAtMs: this.#options.clock.nowMs() };
    this.#underWay.set(key, { flight, waiters });
    return flight;
  }

  async #run(key: string, waiters: readonly IsWaiting[], fly: (isWanted: () => boolean) => Promise<T>): Promise<T> {
    const isWanted = (): boolean => {
      const isStillWanted = this.#current(key, waiters) !== null && waiters.some((isWaiting) => isWaiting());
      if (!isStillWanted) this.#end(key, waiters);
      return isStillWanted;
    };
    // `fly` may end at once, and the flight has to be known before that.
    await Promise.resolve();
    try {
      return await fly(isWanted);
    } catch (error) {
      const flight = this.#current(key, waiters);
      if (flight !== null && this.#options.isToRemember(error)) this.#remember(key, flight);
      throw error;
    } finally {
      this.#end(key, waiters);
    }
  }

  /** The flight of these waiters; null once it was abandoned, and may have been followed by another of its key. */
  #current(key: string, waiters: readonly IsWaiting[]): Flight<T> | null {
    const underWay = this.#underWay.get(key);
    return underWay?.waiters === waiters ? underWay.flight : null;
  }

  #end(key: string, waiters: readonly IsWaiting[]): void {
    if (this.#current(key, waiters) !== null) this.#underWay.delete(key);
  }

  #lastFailure(key: string): Flight<T> | undefined {
    const failure = this.#failures.get(key);
    return failure !== undefined && this.#isRemembered(failure) ? failure.flight : undefined;
  }

  #remember(key: string, flight: Flight<T>): void {
    this.#failures.delete(key);
    this.#failures.set(key, { flight, atMs: this.#options.clock.nowMs() });
    for (const [oldKey, old] of this.#failures) {
      if (this.#isRemembered(old)) break;
      this.#failures.delete(oldKey);
    }
  }

  #isRemembered({ atMs }: Failure<T>): boolean {
    return this.#options.clock.nowMs() - atMs < this.#options.rememberFailuresMs;
  }
}

function always(): boolean {
  return true;
}
