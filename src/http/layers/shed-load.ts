/** Refuses requests beyond what a process works on at a time, before anything is done for them (S2). */
import { Problem } from '../problem.ts';

export interface ShedLoadOptions {
  /** Most requests at a time. One counts until its answer is handed over to be sent, or its client has gone. */
  readonly maxInFlight: number;
  /** Told of each refusal. */
  readonly onShed?: (() => void) | undefined;
}

/** Soon: what is under way takes milliseconds, or at most as long as the store may. */
const RETRY_AFTER_SECONDS = 1;
const OVERLOADED = 'The gateway has as many requests under way as it can serve. Try again later.';

export class OverloadedError extends Problem {
  constructor() {
    super(500, OVERLOADED, { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } });
  }
}

/**
 * Places for requests that are under way. A client that is slow to take its answer costs no work, and its connection is
 * bounded elsewhere: it keeps nobody out.
 */
export class Places {
  readonly #options: ShedLoadOptions;
  #taken = 0;

  constructor(options: ShedLoadOptions) {
    this.#options = options;
  }

  /** Null where there is none left. */
  take(): Place | null {
    if (this.#taken >= this.#options.maxInFlight) return null;
    this.#taken += 1;
    return new Place(this);
  }

  giveBack(): void {
    this.#taken -= 1;
  }

  /** Throws an OverloadedError. */
  refuse(): never {
    this.#options.onShed?.();
    throw new OverloadedError();
  }
}

/** One request's. */
class Place {
  readonly #places: Places;
  #isTaken = true;

  constructor(places: Places) {
    this.#places = places;
  }

  /** When the request ends; once or more. */
  leave(): void {
    if (this.#isTaken) this.#places.giveBack();
    this.#isTaken = false;
  }
}
