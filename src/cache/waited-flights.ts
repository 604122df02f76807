/**
 * One flight per name: a caller that comes while it is under way waits for it. One deadline ends it for all of them, and its
 * signal aborts at that deadline, or once nobody waits any more. That, and who waits, is what a `SingleFlight`
 * (time/single-flight.ts) does not know, and no other user of one needs.
 */
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';

export interface Flight<T> {
  readonly result: Promise<T>;
  /** Whether this caller began it, and did not join one that was under way. */
  readonly startedByCaller: boolean;
  /** When it began, Unix milliseconds, and by the clock that is never set back. */
  readonly startedAtMs: number;
  readonly startedMicros: number;
  /**
   * Aborted if the flight is late (the reason is `late()`), or if everybody has left. A call to the store that was sent goes
   * on all the same.
   */
  readonly signal: AbortSignal;
}

export interface WaitedFlightsOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  /** How long a flight may take. */
  readonly timeoutMs: number;
  /** The error of a flight that is late. */
  readonly late: () => Error;
}

/**
 * `lateness` never resolves, and rejects when the flight is late, with the same error as its waiters get. `waiting`: how many
 * callers wait for it now.
 */
type Run<T> = (signal: AbortSignal, lateness: Promise<never>, waiting: () => number) => Promise<T>;

export class WaitedFlights<T> {
  readonly #options: WaitedFlightsOptions;
  readonly #underWay = new Map<string, UnderWay<T>>();

  constructor(options: WaitedFlightsOptions) {
    this.#options = options;
  }

  has(name: string): boolean {
    return this.#underWay.has(name);
  }

  /** The names of all flights that are under way, with when they began, Unix milliseconds, and their results. */
  *underWay(): Generator<readonly [name: string, startedAtMs: number, result: Promise<T>]> {
    for (const [name, { flight }] of this.#underWay) yield [name, flight.startedAtMs, flight.result];
  }

  /**
   * Joins the flight of that name, or begins one by calling `run`. `caller` aborts when the caller leaves; without
   * it, it never does.
   *
   * A reader may join a flight that everybody else has just left:
   * 1. The last reader leaves, and the signal aborts.
   * 2. Another one joins, because the flight has not ended.
   * 3. If its call was sent, the flight ends with the answer. If not, it ends with an `aborted` error, and `signal.aborted`
   *    says that the caller may begin another.
   */
  join(name: string, caller: AbortSignal | undefined, run: Run<T>): Flight<T> {
    const present = this.#underWay.get(name);
    const underWay = present ?? this.#begin(name, run);
    underWay.wait(caller);
    return { ...underWay.flight, startedByCaller: present === undefined };
  }

  #begin(name: string, run: Run<T>): UnderWay<T> {
    const { clock, timers, timeoutMs, late } = this.#options;
    const controller = new AbortController();
    const { signal } = controller;
    const { promise: lateness, reject } = Promise.withResolvers<never>();
    const cancel = timers.after(timeoutMs, () => {
      const error = late();
      controller.abort(error);
      reject(error);
    });
    // `run` may end at once, and the flight has to be known before that.
    const running = Promise.resolve().then(() => run(signal, lateness, () => underWay.waiting));
    const result = Promise.race([running, lateness]).finally(() => {
      cancel();
      this.#underWay.delete(name);
    });
    const started = { startedAtMs: clock.nowMs(), startedMicros: clock.nowMicros() };
    const underWay: UnderWay<T> = new UnderWay({ result, ...started, signal }, controller);
    this.#underWay.set(name, underWay);
    return underWay;
  }
}

class UnderWay<T> {
  readonly flight: Omit<Flight<T>, 'startedByCaller'>;
  readonly #controller: AbortController;
  waiting = 0;

  constructor(flight: Omit<Flight<T>, 'startedByCaller'>, controller: AbortController) {
    this.flight = flight;
    this.#controller = controller;
  }

  wait(caller: AbortSignal | undefined): void {
    this.waiting += 1;
    if (caller?.aborted === true) this.#leave();
    else caller?.addEventListener('abort', () => this.#leave(), { once: true });
  }

  #leave(): void {
    this.waiting -= 1;
    if (this.waiting === 0) this.#controller.abort();
  }
}
