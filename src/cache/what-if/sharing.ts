/**
 * One what-if of a whole fleet, through the state Redis. Each key is followed by one process: the reads that it samples
 * travel to it, and every process publishes its report. At its end it hands over the last one, which is kept for as long as
 * the counts of a process reach back, so that a rollout forgets nothing. No reader ever waits for any of this.
 *
 * While Redis does not answer, reads wait, and those that are too many to wait are simulated where they were read; so are
 * those that nobody received. A message that is lost all the same loses its reads, and nothing else.
 */
import type { Clock } from '../../time/clock.ts';
import type { RedisLink } from '../../redis/connection.ts';
import { NotSentError } from '../../redis/errors.ts';
import { whatIfChannel, whatIfEndedKey, whatIfReportKey } from '../../redis/names.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import type { Timers } from '../../time/timers.ts';
import { hash32, mix32 } from '../request.ts';
import { CACHE_CLASSES } from '../ttl-policy.ts';
import { EVENT_KINDS, type KeyEvent, type TtlSimulator } from './simulator.ts';
import { bucketOf, isOfOtherRelease, middleOf, type WhatIfReport, whatIfReportSchema } from './tally.ts';
import { isSampled } from './ticks.ts';

const SEND_EVERY_MS = 250;
/** A report is published after so many sendings, if there is anything new in it. */
const PUBLISH_EVERY = 4;
/** One without news, so that it stays there. */
const REPUBLISH_EVERY = 20;
const KEPT_FOR_MS = 15_000;
const ENDED_KEPT_FOR_MS = 36 * 3_600_000;
/** The newest are kept. */
const MAX_ENDED = 32;

/** KEYS: the report, those that have ended. ARGV: the report, the process, now, for how long and how many are kept. */
const HAND_OVER = defineScript(
  'handOverWhatIf',
  `
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[3] - ARGV[4])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
`,
);

const VERSION = 3;
/** A message that begins with more is no gateway's. */
const MAX_VERSION = 31;
/** Version, sender (4), age of the first event in milliseconds (2), the levels at which the sender samples. */
const HEADER_BYTES = 8 + CACHE_CLASSES.length;
/** Class and kind, key (4), milliseconds after the first event (2), the buckets of its two durations. */
const EVENT_BYTES = 9;
/** More are sent before it is time. */
const MAX_EVENTS = 128;
const MAX_MS = 0xffff;

export interface EventBatch {
  /** `hash32` of the sender's id. */
  readonly sender: number;
  /** The levels at which it samples. */
  readonly levels: readonly number[];
  readonly events: readonly KeyEvent[];
}

/** The message that it travels as. Times travel as ages: clocks may differ. */
export function encodeBatch({ sender, levels, events }: EventBatch, nowMs: number): string {
  const bytes = Buffer.alloc(HEADER_BYTES + events.length * EVENT_BYTES);
  const firstAtMs = events[0]?.atMs ?? nowMs;
  bytes.writeUInt8(VERSION);
  bytes.writeUInt32LE(sender, 1);
  bytes.writeUInt16LE(within(nowMs - firstAtMs), 5);
  bytes.set(levels, 7);
  for (const [index, { kind, class: cacheClass, id, atMs, ageMs, madeMsAgo }] of events.entries()) {
    const at = HEADER_BYTES + index * EVENT_BYTES;
    bytes.writeUInt8(CACHE_CLASSES.indexOf(cacheClass) | (EVENT_KINDS.indexOf(kind) << 4), at);
    bytes.writeUInt32LE(id, at + 1);
    bytes.writeUInt16LE(within(atMs - firstAtMs), at + 5);
    bytes.writeUInt8(bucketOf(ageMs), at + 7);
    bytes.writeUInt8(bucketOf(madeMsAgo), at + 8);
  }
  return bytes.toString('base64');
}

function within(ms: number): number {
  return Math.min(MAX_MS, Math.max(0, ms));
}

/** Whether a message has the form of another release, which runs beside this one during a rollout. It is left out. */
function isOfOtherVersion(message: string): boolean {
  const [version = 0] = Buffer.from(message, 'base64');
  return version !== VERSION && version > 0 && version <= MAX_VERSION;
}

/** Null if it is not a message of this form. */
export function decodeBatch(message: string, receivedAtMs: number): EventBatch | null {
  const bytes = Buffer.from(message, 'base64');
  if (bytes[0] !== VERSION || bytes.length < HEADER_BYTES) return null;
  if ((bytes.length - HEADER_BYTES) % EVENT_BYTES !== 0) return null;
  const firstAtMs = receivedAtMs - bytes.readUInt16LE(5);
  const events: KeyEvent[] = [];
  for (let at = HEADER_BYTES; at < bytes.length; at += EVENT_BYTES) {
    const code = bytes.readUInt8(at);
    const [cacheClass, kind] = [CACHE_CLASSES[code & 15], EVENT_KINDS[code >> 4]];
    if (cacheClass === undefined || kind === undefined) return null;
    const atMs = firstAtMs + bytes.readUInt16LE(at + 5);
    const [ageMs, madeMsAgo] = [middleOf(bytes.readUInt8(at + 7)), middleOf(bytes.readUInt8(at + 8))];
    events.push({ kind, class: cacheClass, id: bytes.readUInt32LE(at + 1), atMs, ageMs, madeMsAgo });
  }
  return { sender: bytes.readUInt32LE(1), levels: [...bytes.subarray(7, HEADER_BYTES)], events };
}

export interface SharingOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  /** To the state Redis. It stays its owner's. */
  readonly link: Pick<RedisLink, 'kind' | 'run' | 'subscriber' | 'isUp'>;
  /** Names the store: processes before another one are left out. */
  readonly store: string;
  /** This process. */
  readonly self: string;
  /** The processes before the same store, this one among them, in order. */
  readonly peers: () => readonly string[];
  readonly simulator: Pick<TtlSimulator, 'add' | 'addAll' | 'countUnsampled' | 'levels'>;
  /** Makes the report that this process publishes. */
  readonly report: () => WhatIfReport;
  /** Called with what another process sent that can't be read. Must not throw. */
  readonly onBroken: (what: string) => void;
}

/** A process that follows keys. */
class Owner {
  readonly id: string;
  readonly seed: number;
  waiting: KeyEvent[] = [];
  /** The levels at which it samples, as far as it has reported: every key until then. */
  levels: readonly number[] = [];

  constructor(id: string) {
    this.id = id;
    this.seed = hash32(id);
  }
}

export class Sharing {
  readonly #options: SharingOptions;
  readonly #self: Owner;
  readonly #unlisten: () => void;
  #owners: readonly Owner[];
  #cancel: () => void = () => undefined;
  /** Reports of processes that have ended, which change no more. */
  #ended: ReadonlyMap<string, readonly WhatIfReport[]> = new Map();
  #sentLevels = '';
  #sendings = 0;
  /** The report that was published last, without its time. */
  #published = '';

  constructor(options: SharingOptions) {
    this.#options = options;
    this.#self = new Owner(options.self);
    this.#owners = [this.#self];
    const channel = whatIfChannel(options.store, options.self);
    this.#unlisten = options.link.subscriber.listen(channel, (message) => this.#onMessage(message));
    this.#schedule();
  }

  /** The event reaches the simulator that follows the key within half a second, if that samples it. */
  add(event: KeyEvent): void {
    const { simulator } = this.#options;
    const { kind, class: cacheClass, id } = event;
    const owner = this.#ownerOf(id);
    const isHot = kind === 'turning' || kind === 'hot';
    if (owner === this.#self) simulator.add(event);
    else if (isHot || isSampled(id, owner.levels[CACHE_CLASSES.indexOf(cacheClass)] ?? 0)) this.#wait(owner, [event]);
    else if (kind === 'tail') simulator.countUnsampled(cacheClass);
  }

  /** A read of a list and its items: they reach those who follow any of these. */
  addList(list: KeyEvent, items: readonly KeyEvent[]): void {
    const byOwner = Map.groupBy(items, ({ id }) => this.#ownerOf(id));
    for (const [owner, own] of byOwner) {
      const level = owner === this.#self ? this.#options.simulator.levels().at(-1) : owner.levels[CACHE_CLASSES.length];
      const sampled = own.filter(({ id }) => isSampled(id, level ?? 0));
      if (sampled.length === 0) continue;
      if (owner === this.#self) this.#options.simulator.addAll([list, ...sampled]);
      else this.#wait(owner, [list, ...sampled]);
    }
  }

  /** The events stay together. */
  #wait(owner: Owner, events: readonly KeyEvent[]): void {
    owner.waiting.push(...events);
    if (owner.waiting.length >= MAX_EVENTS) void this.#send(owner);
  }

  /** The reports of the others, as far as they can be had. Never rejects. */
  async reportsOfOthers(): Promise<readonly WhatIfReport[]> {
    const { link, store, self, peers, clock } = this.#options;
    this.#findOwners();
    if (!link.isUp()) return [];
    try {
      const since = clock.nowMs() - ENDED_KEPT_FOR_MS;
      const ended = await link.run((redis) => redis.zrangebyscore(whatIfEndedKey(store), since, '+inf'));
      const wanted = ended.filter((id) => !this.#ended.has(id));
      const running = peers().filter((id) => id !== self && !ended.includes(id));
      const reports = await this.#readReports([...wanted, ...running]);
      this.#ended = new Map(ended.map((id) => [id, this.#ended.get(id) ?? reports.get(id) ?? []]));
      return [...this.#ended.values(), ...running.map((id) => reports.get(id) ?? [])].flat();
    } catch {
      return [];
    }
  }

  /** Hands its report over. Never rejects. */
  async close(): Promise<void> {
    const { link, store, self, report, clock } = this.#options;
    this.#cancel();
    this.#unlisten();
    if (!link.isUp()) return;
    this.#sendAll();
    const last = report();
    const handOver =
      last.classes.length === 0
        ? link.run((redis) => redis.del(whatIfReportKey(store, self)))
        : runScript(link, HAND_OVER, {
            keys: [whatIfReportKey(store, self), whatIfEndedKey(store)],
            args: [JSON.stringify({ ...last, hasEnded: true }), self, clock.nowMs(), ENDED_KEPT_FOR_MS, MAX_ENDED],
          });
    await handOver.catch(() => undefined);
  }

  /** By process; none of those that have none that can be read. */
  async #readReports(ids: readonly string[]): Promise<ReadonlyMap<string, readonly WhatIfReport[]>> {
    const { link, store, onBroken } = this.#options;
    if (ids.length === 0) return new Map();
    const texts = await link.run((redis) => redis.mget(ids.map((id) => whatIfReportKey(store, id))));
    const read = (text: string | null | undefined): WhatIfReport[] => {
      if (text === null || text === undefined) return [];
      try {
        const report: unknown = JSON.parse(text);
        return isOfOtherRelease(report) ? [] : [whatIfReportSchema.parse(report)];
      } catch {
        onBroken('what-if curves of another process');
        return [];
      }
    };
    return new Map(ids.map((id, index) => [id, read(texts[index])]));
  }

  #schedule(): void {
    this.#cancel = this.#options.timers.after(SEND_EVERY_MS, () => {
      this.#findOwners();
      this.#sendAll();
      this.#sendings += 1;
      if (this.#sendings % PUBLISH_EVERY === 0) void this.#publish();
      this.#schedule();
    });
  }

  /** While Redis is away they are those that were known last: an outage of a moment must not move keys to and fro. */
  #findOwners(): void {
    const ids = this.#options.peers();
    if (ids.join() === this.#owners.map(({ id }) => id).join()) return;
    const known = new Map([this.#self, ...this.#owners].map((owner) => [owner.id, owner]));
    const owners = ids.map((id) => known.get(id) ?? new Owner(id));
    for (const owner of this.#owners) if (!owners.includes(owner)) this.#options.simulator.addAll(owner.waiting);
    this.#owners = owners;
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

  /** All are notified of new levels, also those for whom there are no events. */
  #sendAll(): void {
    if (!this.#options.link.isUp()) return;
    const levels = this.#options.simulator.levels().join();
    const isNews = levels !== this.#sentLevels;
    this.#sentLevels = levels;
    for (const owner of this.#owners) {
      if (owner !== this.#self && (isNews || owner.waiting.length > 0)) void this.#send(owner);
    }
  }

  /** Never rejects. After a timeout the message is taken for sent: Redis has been slow, and most likely has it. */
  async #send(owner: Owner): Promise<void> {
    const { link, store, simulator, clock } = this.#options;
    const events = owner.waiting;
    owner.waiting = [];
    const message = encodeBatch({ sender: this.#self.seed, levels: simulator.levels(), events }, clock.nowMs());
    try {
      const receivers = await link.run((redis) => redis.publish(whatIfChannel(store, owner.id), message));
      // A process that is connecting anew, or has just died. A Cluster counts only those at one node.
      if (receivers === 0 && link.kind !== 'cluster') simulator.addAll(events);
    } catch (error) {
      if (error instanceof NotSentError) simulator.addAll(events);
    }
  }

  #onMessage(message: string): void {
    const { simulator, clock, onBroken } = this.#options;
    const batch = decodeBatch(message, clock.nowMs());
    if (batch === null) {
      if (!isOfOtherVersion(message)) onBroken('reads of another process');
      return;
    }
    const sender = this.#owners.find(({ seed }) => seed === batch.sender);
    if (sender !== undefined) sender.levels = batch.levels;
    simulator.addAll(batch.events);
  }

  /** Never rejects. */
  async #publish(): Promise<void> {
    const { link, store, self, report } = this.#options;
    const { atMs, ...counts } = report();
    const news = JSON.stringify(counts);
    if (news === this.#published && this.#sendings % REPUBLISH_EVERY !== 0) return;
    const text = JSON.stringify({ ...counts, atMs });
    try {
      await link.run((redis) => redis.set(whatIfReportKey(store, self), text, 'PX', KEPT_FOR_MS));
      this.#published = news;
    } catch {
      // The next one follows in a second.
    }
  }
}
