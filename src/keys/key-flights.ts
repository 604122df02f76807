/** One look-up at a time a key: whoever comes while it is under way waits for it. */
import type { KeyHash } from './key.ts';

interface Flight<T> {
  readonly landing: Promise<T>;
  /** Whether the key has changed since the source was asked. */
  isOvertaken: boolean;
}

export interface KeyFlightsOptions<T> {
  readonly ask: (hash: KeyHash) => Promise<T>;
  /** Told of each answer that no change has overtaken, with the time at which it was asked for. */
  readonly onAnswer: (hash: KeyHash, answer: T, askedAtMs: number) => void;
  readonly nowMs: () => number;
}

/** After so many answers that were overtaken, the last one is good enough for those who wait, and kept by nobody. */
const MAX_ASKED = 3;

export class KeyFlights<T> {
  readonly #options: KeyFlightsOptions<T>;
  readonly #underWay = new Map<KeyHash, Flight<T>>();

  constructor(options: KeyFlightsOptions<T>) {
    this.#options = options;
  }

  /** Joins the look-up of that key, or begins it. Rejects as the source does. */
  join(hash: KeyHash): Promise<T> {
    const present = this.#underWay.get(hash);
    if (present !== undefined) return present.landing;
    const flight: Flight<T> = { landing: Promise.resolve().then(() => this.#fly(hash, flight)), isOvertaken: false };
    this.#underWay.set(hash, flight);
    return flight.landing;
  }

  /** The key has changed: what is being asked about it may come from before, and is asked again. */
  overtake(hash: KeyHash): void {
    const flight = this.#underWay.get(hash);
    if (flight !== undefined) flight.isOvertaken = true;
  }

  overtakeAll(): void {
    for (const flight of this.#underWay.values()) flight.isOvertaken = true;
  }

  async #fly(hash: KeyHash, flight: Flight<T>): Promise<T> {
    try {
      for (let asked = 1; ; asked += 1) {
        flight.isOvertaken = false;
        const askedAtMs = this.#options.nowMs();
        const answer = await this.#options.ask(hash);
        if (!flight.isOvertaken) {
          this.#options.onAnswer(hash, answer, askedAtMs);
          return answer;
        }
        if (asked === MAX_ASKED) return answer;
      }
    } finally {
      this.#underWay.delete(hash);
    }
  }
}
