/**
 * How many requests the process works on at a time, and whose they are (S2: shed load is 500). A request holds a slot while it
 * is served: one of its client's address until its key is known, then one of its key. While it waits for a call to the store it
 * costs no work, so it waits in a room of its own, which is larger. Neither the slots nor the room go to one holder alone.
 */
import { type Release, RESERVE_PERCENT, Shares } from '../shares/shares.ts';
import type { AnswerMemory } from '../upstream/answer-memory.ts';

/** Waiting costs memory only. A thousand readers of one key may wait for one call, and leave the others their share. */
const ROOM_PER_SLOT = 2;

export class Slots {
  readonly serving: Shares;
  readonly waiting: Shares;
  readonly memory: AnswerMemory;
  readonly #onRefused: () => void;

  /** `maxInFlight`: how many are served at a time. `onRefused`: a request was refused. */
  constructor(maxInFlight: number, memory: AnswerMemory, onRefused: () => void) {
    this.memory = memory;
    this.#onRefused = onRefused;
    this.serving = new Shares({ capacity: maxInFlight, reservePercent: RESERVE_PERCENT });
    this.waiting = new Shares({ capacity: ROOM_PER_SLOT * maxInFlight, reservePercent: RESERVE_PERCENT });
  }

  /** A slot for a request of that address; null if there is none for it. */
  enter(address: string): Slot | null {
    return this.countRefusal(this.serving.admits(address)) ? new Slot(this, address) : null;
  }

  /** Counts a refusal; returns what it is given. */
  countRefusal(isAllowed: boolean): boolean {
    if (!isAllowed) this.#onRefused();
    return isAllowed;
  }
}

/** The place and the answer memory that one request holds, until it leaves. */
export class Slot {
  readonly #slots: Slots;
  #holder: string;
  /** Where it is counted; null once it has left. */
  #place: Shares | null;
  /** Gives back the memory of the answer that its response is made from. */
  #release: Release | null = null;

  constructor(slots: Slots, holder: string) {
    this.#slots = slots;
    this.#holder = holder;
    this.#place = slots.serving;
    slots.serving.take(holder);
  }

  get holder(): string {
    return this.#holder;
  }

  /** Counts the request among those of its key from now on. False if the key has its share already: it is to be refused. */
  assign(keyId: string): boolean {
    if (this.#place === null) return true;
    this.#place.giveBack(this.#holder);
    this.#holder = keyId;
    const isAllowed = this.#place.admits(keyId);
    this.#place.take(keyId);
    return this.#slots.countRefusal(isAllowed);
  }

  /** Gives up the slot for a place in the room of those that wait. False if that is full: the request is to be refused. */
  wait(): boolean {
    const { serving, waiting } = this.#slots;
    if (this.#place !== serving) return true;
    if (!this.#slots.countRefusal(waiting.admits(this.#holder))) return false;
    serving.giveBack(this.#holder);
    this.#place = waiting;
    waiting.take(this.#holder);
    return true;
  }

  /** The answer that the response is made from has just come, and is under way until the request leaves or uses another. */
  use(answer: { readonly bytes: number }): void {
    this.#release?.();
    this.#release = this.#place === null ? null : this.#slots.memory.use(answer, this.#holder);
  }

  /** Called as often as it may. */
  leave(): void {
    this.#release?.();
    this.#release = null;
    this.#place?.giveBack(this.#holder);
    this.#place = null;
  }
}
