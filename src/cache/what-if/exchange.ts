/**
 * Brings every read of the fleet to the process that follows its key. A message that is lost loses samples and nothing
 * else; no reader ever waits for any of this.
 */
import type { Clock } from '../../clock.ts';
import type { Timers } from '../../timers.ts';
import type { CacheClass } from '../ttl-policy.ts';
import type { WhatIfModel } from './model.ts';
import { Owners } from './owners.ts';
import type { Messages } from './ports.ts';
import { decodeReads, encodeReads, type KeyRead, ReadBuffer } from './read-batch.ts';

/** They report, for logs, and must not throw. */
export interface ExchangeHooks {
  /** What was heard is no message of this form. */
  readonly onBroken?: (what: string) => void;
}

export interface ExchangeOptions {
  readonly messages: Messages;
  /** This process. */
  readonly self: string;
  /** The processes in front of the same store, this one among them, in order. */
  readonly peers: () => readonly string[];
  readonly model: Pick<WhatIfModel, 'read'>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly hooks?: ExchangeHooks;
}

const SEND_EVERY_MS = 250;
/** Where as many are at hand they are sent before it is time, so that the event loop is never held for long. */
const MOST_READS = 512;

export class ReadExchange {
  readonly #options: ExchangeOptions;
  readonly #unlisten: () => void;
  readonly #reads = new ReadBuffer(MOST_READS);
  #owners: Owners;
  #cancel: () => void = () => undefined;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#owners = new Owners([options.self]);
    this.#unlisten = options.messages.listen((message) => this.#hear(message));
    this.#schedule();
  }

  /** It reaches its model within half a second. As `WhatIfModel.read`. */
  add(cacheClass: CacheClass, keyHash: number, atMs: number): void {
    this.#reads.add(cacheClass, keyHash, atMs);
    if (this.#reads.isFull) this.#send();
  }

  close(): void {
    this.#cancel();
    this.#unlisten();
  }

  #schedule(): void {
    this.#cancel = this.#options.timers.after(SEND_EVERY_MS, () => {
      this.#send();
      this.#schedule();
    });
  }

  #send(): void {
    const { self, model } = this.#options;
    if (this.#reads.size === 0) return;
    const owners = this.#currentOwners();
    const own = owners.ids.indexOf(self);
    const ofOthers = new Map<number, KeyRead[]>();
    this.#reads.drain((cacheClass, keyHash, atMs) => {
      const owner = owners.of(keyHash);
      if (owner === own) {
        model.read(cacheClass, keyHash, atMs);
        return;
      }
      const read = { class: cacheClass, keyHash, atMs };
      const reads = ofOthers.get(owner);
      if (reads === undefined) ofOthers.set(owner, [read]);
      else reads.push(read);
    });
    for (const [owner, reads] of ofOthers) {
      const id = owners.ids[owner];
      if (id !== undefined) this.#tell(id, reads);
    }
  }

  /** Where nobody can be told nothing is shared either, and each process follows what it reads itself. */
  #currentOwners(): Owners {
    const { messages, self, peers } = this.#options;
    const ids = messages.isUp() ? peers() : [self];
    if (!this.#owners.isOf(ids)) this.#owners = new Owners(ids);
    return this.#owners;
  }

  #tell(id: string, reads: readonly KeyRead[]): void {
    const { messages, clock } = this.#options;
    // Where it fails these are lost; the link tells that it is down.
    messages.send(id, encodeReads(reads, clock.nowMs())).catch(() => undefined);
  }

  #hear(message: string): void {
    const reads = decodeReads(message, this.#options.clock.nowMs());
    if (reads === null) this.#options.hooks?.onBroken?.('reads of another process');
    else this.#follow(reads);
  }

  #follow(reads: readonly KeyRead[]): void {
    const { model } = this.#options;
    for (const { class: cacheClass, keyHash, atMs } of reads) model.read(cacheClass, keyHash, atMs);
  }
}
