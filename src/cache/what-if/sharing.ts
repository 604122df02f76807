/**
 * One what-if of a whole fleet, through the state Redis. Each key is followed by one process: the reads that it samples
 * travel to it, and every process publishes its report. A message that is lost loses samples and nothing else, and no
 * reader ever waits for any of this.
 */
import type { Clock } from '../../clock.ts';
import type { RedisLink } from '../../redis/connection.ts';
import { whatIfChannel, whatIfReportKey } from '../../redis/names.ts';
import type { Timers } from '../../timers.ts';
import { hash32, mix32 } from '../hash.ts';
import { CACHE_CLASSES, type CacheClass } from '../ttl-policy.ts';
import { type WhatIfReport, whatIfReportSchema } from './curve.ts';
import { EVENT_KINDS, type EventKind, isSampled, type TtlSimulator } from './simulator.ts';

const SEND_EVERY_MS = 250;
/** A report is published after so many sendings. */
const PUBLISH_EVERY = 4;
/** An unchanged report is published again so that it does not expire. */
const RENEW_AFTER = 20;
const KEPT_FOR_MS = 15_000;

const VERSION = 2;
/** Version, sender (4), age of the first event in milliseconds (2), the level at which the sender samples each class. */
const HEADER_BYTES = 7 + CACHE_CLASSES.length;
/** Class and kind, key (4), milliseconds after the first event (2). */
const EVENT_BYTES = 7;
/** More are sent before it is time. */
const MOST_EVENTS = 128;
const LONGEST_MS = 0xffff;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

export interface KeyEvent {
  readonly kind: EventKind;
  readonly class: CacheClass;
  /** The key's `keyId`. */
  readonly id: number;
  /** Unix milliseconds. */
  readonly atMs: number;
}

export interface EventBatch {
  /** `hash32` of the sender's id. */
  readonly sender: number;
  /** The level at which it samples each class. */
  readonly levels: readonly number[];
  readonly events: readonly KeyEvent[];
}

/** Events that wait to be sent to one process, as the bytes that travel. Their times travel as ages: clocks may differ. */
export class Outbox {
  readonly #bytes = Buffer.alloc(HEADER_BYTES + MOST_EVENTS * EVENT_BYTES);
  #size = HEADER_BYTES;
  #firstAtMs = 0;

  get isEmpty(): boolean {
    return this.#size === HEADER_BYTES;
  }

  get isFull(): boolean {
    return this.#size === this.#bytes.length;
  }

  /** It must not be full. */
  add({ kind, class: cacheClass, id, atMs }: KeyEvent): void {
    if (this.isEmpty) this.#firstAtMs = atMs;
    const code = CACHE_CLASSES.indexOf(cacheClass) | (EVENT_KINDS.indexOf(kind) << 4);
    this.#size = this.#bytes.writeUInt8(code, this.#size);
    this.#size = this.#bytes.writeUInt32LE(id, this.#size);
    this.#size = this.#bytes.writeUInt16LE(within(atMs - this.#firstAtMs), this.#size);
  }

  /** The message with all events; the outbox is empty afterwards. */
  take(sender: number, levels: readonly number[], nowMs: number): string {
    let at = this.#bytes.writeUInt8(VERSION);
    at = this.#bytes.writeUInt32LE(sender, at);
    at = this.#bytes.writeUInt16LE(this.isEmpty ? 0 : within(nowMs - this.#firstAtMs), at);
    for (const level of levels) at = this.#bytes.writeUInt8(level, at);
    const message = this.#bytes.toString('base64', 0, this.#size);
    this.#size = HEADER_BYTES;
    return message;
  }
}

function within(ms: number): number {
  return Math.min(LONGEST_MS, Math.max(0, ms));
}

/** Null if it is not a message of this form. */
export function decodeBatch(message: string, receivedAtMs: number): EventBatch | null {
  const bytes = BASE64.test(message) ? Buffer.from(message, 'base64') : Buffer.alloc(0);
  if (bytes[0] !== VERSION || bytes.length < HEADER_BYTES) return null;
  if ((bytes.length - HEADER_BYTES) % EVENT_BYTES !== 0) return null;
  const firstAtMs = receivedAtMs - bytes.readUInt16LE(5);
  const events: KeyEvent[] = [];
  for (let at = HEADER_BYTES; at < bytes.length; at += EVENT_BYTES) {
    const code = bytes.readUInt8(at);
    const [cacheClass, kind] = [CACHE_CLASSES[code & 15], EVENT_KINDS[code >> 4]];
    if (cacheClass === undefined || kind === undefined) return null;
    const atMs = firstAtMs + bytes.readUInt16LE(at + 5);
    events.push({ kind, class: cacheClass, id: bytes.readUInt32LE(at + 1), atMs });
  }
  return { sender: bytes.readUInt32LE(1), levels: [...bytes.subarray(7, HEADER_BYTES)], events };
}

export interface SharingOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  /** To the state Redis. It stays its owner's. */
  readonly link: Pick<RedisLink, 'run' | 'subscriber' | 'isUp'>;
  /** Names the store: processes before another one are left out. */
  readonly store: string;
  /** This process. */
  readonly self: string;
  /** The processes before the same store, this one among them, in order. */
  readonly peers: () => readonly string[];
  readonly simulator: Pick<TtlSimulator, 'add' | 'countUnsampled' | 'levels'>;
  /** Makes the report that this process publishes. */
  readonly report: () => WhatIfReport;
  /** Called with what another process sent that can't be read. Must not throw. */
  readonly onBroken: (what: string) => void;
}

/** A process that follows keys. */
interface Owner {
  readonly id: string;
  /** `hash32` of the id. */
  readonly seed: number;
  readonly outbox: Outbox;
  /** The level at which it samples each class, as far as it has told: every key until then. */
  levels: readonly number[];
}

export class Sharing {
  readonly #options: SharingOptions;
  readonly #self: Owner;
  readonly #unlisten: () => void;
  #owners: readonly Owner[];
  #cancel: () => void = () => undefined;
  #sentLevels = '';
  #published = '';
  #sendings = 0;
  #publishedAt = 0;

  constructor(options: SharingOptions) {
    this.#options = options;
    this.#self = newOwner(options.self);
    this.#owners = [this.#self];
    const channel = whatIfChannel(options.store, options.self);
    this.#unlisten = options.link.subscriber.listen(channel, (message) => this.#hear(message));
    this.#schedule();
  }

  /** It reaches the simulator that follows the key within half a second, if that samples it. */
  add(kind: EventKind, cacheClass: CacheClass, id: number, atMs: number): void {
    const { simulator } = this.#options;
    const owner = this.#ownerOf(id);
    if (owner === this.#self) {
      simulator.add(kind, cacheClass, id, atMs);
    } else if (
      (kind === 'tail' || kind === 'backfill') &&
      !isSampled(id, owner.levels[CACHE_CLASSES.indexOf(cacheClass)] ?? 0)
    ) {
      if (kind === 'tail') simulator.countUnsampled(cacheClass);
    } else {
      owner.outbox.add({ kind, class: cacheClass, id, atMs });
      if (owner.outbox.isFull) this.#send(owner);
    }
  }

  /** The reports of the others, as far as they can be had. Never rejects. */
  async reportsOfOthers(): Promise<readonly WhatIfReport[]> {
    const { link, store, self, peers } = this.#options;
    this.#findOwners();
    const others = peers().filter((id) => id !== self);
    if (others.length === 0 || !link.isUp()) return [];
    try {
      const texts = await link.run((redis) => redis.mget(others.map((id) => whatIfReportKey(store, id))));
      return texts.flatMap((text) => (text === null ? [] : this.#readReport(text)));
    } catch {
      return [];
    }
  }

  close(): void {
    const { link, store, self } = this.#options;
    this.#cancel();
    this.#unlisten();
    if (link.isUp()) link.run((redis) => redis.del(whatIfReportKey(store, self))).catch(() => undefined);
  }

  #schedule(): void {
    this.#cancel = this.#options.timers.after(SEND_EVERY_MS, () => {
      this.#findOwners();
      this.#sendAll();
      this.#sendings += 1;
      if (this.#sendings % PUBLISH_EVERY === 0) this.#publish();
      this.#schedule();
    });
  }

  /** While Redis is away each process follows what it reads itself. */
  #findOwners(): void {
    const { link, peers } = this.#options;
    const ids = link.isUp() ? peers() : [this.#self.id];
    if (ids.length === this.#owners.length && ids.every((id, index) => id === this.#owners[index]?.id)) return;
    // Events that wait for a process that is left out would be lost.
    this.#sendAll();
    const known = new Map([this.#self, ...this.#owners].map((owner) => [owner.id, owner]));
    this.#owners = ids.map((id) => known.get(id) ?? newOwner(id));
  }

  /** By rendezvous hashing: if a process comes or goes, only its own keys change hands. */
  #ownerOf(id: number): Owner {
    let best = this.#self;
    let most = -1;
    for (const owner of this.#owners) {
      const weight = mix32(owner.seed ^ id);
      if (weight <= most) continue;
      most = weight;
      best = owner;
    }
    return best;
  }

  /** Everybody hears of new levels, also those for whom there are no events. */
  #sendAll(): void {
    const levels = this.#options.simulator.levels().join();
    const isNews = levels !== this.#sentLevels;
    this.#sentLevels = levels;
    for (const owner of this.#owners) if (owner !== this.#self && (isNews || !owner.outbox.isEmpty)) this.#send(owner);
  }

  #send({ id, outbox }: Owner): void {
    const { link, store, simulator, clock } = this.#options;
    const message = outbox.take(this.#self.seed, simulator.levels(), clock.nowMs());
    if (!link.isUp()) this.#hear(message);
    // If it fails these are lost; the link reports that it is down.
    else link.run((redis) => redis.publish(whatIfChannel(store, id), message)).catch(() => undefined);
  }

  #hear(message: string): void {
    const { clock, simulator, onBroken } = this.#options;
    const batch = decodeBatch(message, clock.nowMs());
    if (batch === null) {
      onBroken('reads of another process');
      return;
    }
    const sender = this.#owners.find(({ seed }) => seed === batch.sender);
    if (sender !== undefined) sender.levels = batch.levels;
    for (const { kind, class: cacheClass, id, atMs } of batch.events) simulator.add(kind, cacheClass, id, atMs);
  }

  #publish(): void {
    const { link, store, self, report } = this.#options;
    if (!link.isUp()) return;
    const current = report();
    // The time of the report is not news.
    const news = JSON.stringify(current.classes);
    if (news === this.#published && this.#sendings - this.#publishedAt < RENEW_AFTER) return;
    this.#published = news;
    this.#publishedAt = this.#sendings;
    const text = JSON.stringify(current);
    link
      .run((redis) => redis.set(whatIfReportKey(store, self), text, 'PX', KEPT_FOR_MS))
      .catch(() => (this.#published = ''));
  }

  #readReport(text: string): WhatIfReport[] {
    try {
      return [whatIfReportSchema.parse(JSON.parse(text))];
    } catch {
      this.#options.onBroken('what-if curves of another process');
      return [];
    }
  }
}

function newOwner(id: string): Owner {
  return { id, seed: hash32(id), outbox: new Outbox(), levels: [] };
}
