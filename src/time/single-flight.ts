/** Work that is done once for all who want it at the same time. */

/**
 * One run per name at a time: who asks while it is under way shares its result. The calls to the store have a form of their own
 * (cache/waited-flights.ts), because they end at a deadline, or once all who waited have left.
 */
export class SingleFlight<T> {
  readonly #underWay = new Map<string, Promise<T>>();

  /**
   * The run of that name that is under way, or a new one. Rejects as the run does. `isCurrent`, once the run has waited:
   * whether it was not forgotten meanwhile.
   */
  join(name: string, run: (isCurrent: () => boolean) => Promise<T>): Promise<T> {
    const present = this.#underWay.get(name);
    if (present !== undefined) return present;
    const isCurrent = (): boolean => this.#underWay.get(name) === running;
    const running: Promise<T> = run(isCurrent).finally(() => {
      if (isCurrent()) this.#underWay.delete(name);
    });
    this.#underWay.set(name, running);
    return running;
  }

  /** The next one to ask begins anew: the answer of the run that is under way may be from before a change. */
  forget(name: string): void {
    this.#underWay.delete(name);
  }

  forgetAll(): void {
    this.#underWay.clear();
  }
}

/**
 * The same function, of which one call runs at a time: a call meanwhile gets one more run after it, together with all other
 * calls of that time. So each call is followed by a whole run that began after it, unlike those that join a single flight.
 * Rejects as the run does.
 */
export function oneAtATime(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  const call = (): Promise<void> => {
    if (running === null) {
      running = run().finally(() => {
        running = null;
      });
      return running;
    }
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = null;
        return call();
      });
    return next;
  };
  return call;
}
