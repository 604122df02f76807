/**
 * The turn to call the store, or the place among those who wait for the process that calls: what a look has brought for the
 * flight that begins with it. Several readers may have looked together; if none of them begins a flight, because they have
 * gone or may not wait, all is given back.
 */
import { type Following, type Looked, NOT_FOLLOWING, OWN_LEASE } from './shared-cache.ts';

export class Turn {
  readonly looked: Looked;
  readonly #following: Following;
  #isTaken = false;

  /** `following`: of the ends of calls, from before the look. */
  constructor(looked: Looked, following: Following) {
    this.looked = looked;
    this.#following = following;
  }

  /** The flight that takes it ends the lease, and closes what is returned. */
  take(): Following {
    this.#isTaken = true;
    return this.#following;
  }

  /** Does nothing once it is taken. Never rejects: a lease that is not ended lapses. */
  giveBack(): void {
    if (this.#isTaken) return;
    this.#isTaken = true;
    this.#following.close();
    if (this.looked.status === 'leased') this.looked.lease.release().catch(() => undefined);
  }
}

/** Without the shared cache: this process calls for itself. It can be taken any number of times. */
export const OWN_TURN = new Turn({ status: 'leased', lease: OWN_LEASE }, NOT_FOLLOWING);
