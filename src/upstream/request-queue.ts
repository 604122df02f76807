/**
 * Which calls to the store are sent, and when: a bounded number in flight, which may change, at a bounded rate. The others wait
 * in a queue that is fair to API keys (shares.ts), so that one busy key does not take the store from the rest.
 */
import { FairQueue, type QueueParts, type Release } from '../shares/shares.ts';
import type { CallRate } from './call-rate.ts';

/**
 * Why a call was not sent:
 * - `queue-full`: as many calls as may wait were waiting, and its key had most of them
 * - `queue-timeout`: it had waited as long as it may
 * - `store-failing`: too many of the last calls had failed
 * - `key-failing`: too many of the last calls of its key had failed
 * - `renewal-dropped`: the renewal of a copy could not be had in time, while calls that are awaited went first
 */
export type Rejection = 'queue-full' | 'queue-timeout' | 'store-failing' | 'key-failing' | 'renewal-dropped';

/** Permits one call, to be called once the call is over; or why it is not sent. `abandoned`: nobody waits any more. */
export type Permit = Release | Rejection | 'abandoned';

export interface QueueLimits {
  /** Calls in flight, at first. */
  readonly maxConnections: number;
  readonly maxQueue: number;
  /** The share of `maxConnections` that one API key leaves to others, in percent. */
  readonly reservePercent: number;
}

export interface QueuedCall {
  /** The API key that caused the call. Calls of no key are treated as those of one more key. */
  readonly keyId: string | undefined;
  readonly isBackground: boolean;
  /** How many readers gain by it: calls of one key with more of them go first. */
  readonly readers: () => number;
  /** How long it may wait. */
  readonly waitMs: number;
  /** Aborted once nobody waits for the call: it gives up its place. */
  readonly signal?: AbortSignal;
}

export class RequestQueue {
  readonly #queue: FairQueue<string | undefined>;
  readonly #limits: QueueLimits;
  #rate: CallRate | null = null;
  #isWaitingForRate = false;

  constructor(limits: QueueLimits, parts: Pick<QueueParts, 'clock' | 'timers'>) {
    this.#limits = limits;
    const { maxConnections, maxQueue, reservePercent } = limits;
    // With a limit of 2, too, one key leaves one call to the others; 0 % is for a gateway that has only one.
    const leastReserve = reservePercent === 0 ? 0 : 1;
    const shares = { capacity: maxConnections, maxWaiting: maxQueue, reservePercent, leastReserve };
    this.#queue = new FairQueue(shares, { ...parts, mayGrant: () => this.#takeFromRate() });
  }

  load(): { readonly inFlight: number; readonly queued: number } {
    const { held, waiting } = this.#queue.load();
    return { inFlight: held, queued: waiting };
  }

  /** Whether calls wait until others end, and not for the rate. */
  get isFull(): boolean {
    return this.#queue.load().waiting > 0 && !this.#isWaitingForRate;
  }

  /**
   * From now on so many calls may be in flight. Those that are above it go on. `isUnproven`: the store may bear more, so
   * nothing is refused that could be in flight under `maxConnections`.
   */
  resize(allowed: number, isUnproven: boolean): void {
    const { maxConnections, maxQueue } = this.#limits;
    this.#queue.resize({ capacity: allowed, maxWaiting: maxQueue + (isUnproven ? maxConnections - allowed : 0) });
  }

  /** From now on no more calls than that rate allows. */
  limitBy(rate: CallRate): void {
    this.#rate = rate;
  }

  /** Resolves as soon as it is decided; never rejects. */
  async acquire({ keyId, isBackground, readers, waitMs, signal }: QueuedCall): Promise<Permit> {
    const priority = isBackground ? 'background' : 'awaited';
    const turn = { holder: keyId, priority, worth: readers, waitMs, ...(signal && { signal }) } as const;
    const permit = await this.#queue.acquire(turn);
    if (permit === 'refused') return 'store-failing';
    // The copy is served meanwhile, and its next reader asks again.
    return isBackground && (permit === 'queue-full' || permit === 'queue-timeout') ? 'renewal-dropped' : permit;
  }

  /** Refuses all calls that wait: the store is failing. */
  rejectAll(): void {
    this.#queue.clear();
  }

  /** Whether the rate allows one more call now, which it then counts. If not, waiting calls are served once it does. */
  #takeFromRate(): boolean {
    if (this.#rate === null) return true;
    if (this.#isWaitingForRate) return false;
    this.#isWaitingForRate = !this.#rate.take(() => {
      this.#isWaitingForRate = false;
      this.#queue.serve();
    });
    return !this.#isWaitingForRate;
  }
}
