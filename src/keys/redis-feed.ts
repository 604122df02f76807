/**
 * The changes of the key registry as they are published, and whether all of them arrive. Four times a second the process
 * sends itself a heartbeat through Redis, along the way of the changes. A heartbeat that arrives proves that every change
 * published before it was sent has arrived, and it carries the registry's version: another version than that of the last
 * change means that some were missed. So a cut connection is noticed at once, and one that silently delivers nothing, or
 * delivers late, after `LOST_AFTER_MS`.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { type RedisLink, replyCode } from '../redis/connection.ts';
import { channelName } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import type { Timers } from '../timers.ts';
import type { KeyHash } from './key.ts';
import type { SyncState } from './key-cache.ts';
import { changesChannel, VERSION } from './redis-table.ts';

const HEARTBEAT_EVERY_MS = 250;
/** Since the last heartbeat that arrived was sent. Longer than Redis has to answer one. */
const LOST_AFTER_MS = 900;
/** A heartbeat unanswered for so long won't be answered: any other silence then has the same cause. */
const UNANSWERED_AFTER_MS = 100;
/** A connection that was just cut, or just came back, misses one at most. */
const MAX_MISSED = 2;
const MAX_AWAITED = 8;
/** After so many that were answered and did not arrive, and again after as many, the subscriber connects anew. */
const RECONNECT_AFTER_MISSED = 8;
/** Refusals of every command: a Cluster without most of its primaries, a Redis that loads its data or lost its primary. */
const REFUSES_ALL = new Set(['CLUSTERDOWN', 'LOADING', 'MASTERDOWN']);

const HEARTBEAT = defineScript(
  'keysBeat',
  `
redis.call('PUBLISH', ARGV[1], ARGV[2] .. ' ' .. (redis.call('GET', KEYS[1]) or '-'))
return 1
`,
);

const CHANGE_MESSAGE = /^(\S{1,64}) (\S{1,64}) (\*|[0-9a-f]{64}(?:,[0-9a-f]{64})*)$/;
const HEARTBEAT_MESSAGE = /^([0-9]{1,15}) (\S{1,64})$/;

export interface RedisFeedOptions {
  readonly link: RedisLink;
  readonly clock: Clock;
  readonly timers: Timers;
  /** These keys were changed, which made that version. */
  readonly onChange: (hashes: readonly KeyHash[], version: string) => void;
  /** Changes were missed: any key may have changed. */
  readonly onGap: () => void;
  /** Called with each heartbeat while changes are being missed: Redis answers, and several heartbeats did not arrive. */
  readonly onMissing: () => void;
  /** Called before each heartbeat but the first: the result of those before. */
  readonly onState: (state: SyncState) => void;
}

export class RedisFeed {
  readonly #options: RedisFeedOptions;
  readonly #channel = channelName('keys', 'beat', randomUUID());
  readonly #unsubscribe: (() => void)[] = [];
  /** When the heartbeats that may still arrive were sent, by their number. */
  readonly #sentAtMs = new Map<number, number>();
  #cancelNext = (): void => {};
  #lastNumber = 0;
  #isSending = false;
  #isUnanswered = false;
  #isClosed = false;
  /** Heartbeats in a row that were answered and did not arrive, with the one under way. */
  #missed = 0;
  #version: string | null = null;
  #arrivedSentAtMs = Number.NEGATIVE_INFINITY;
  #doesRedisAnswer = false;

  constructor(options: RedisFeedOptions) {
    this.#options = options;
  }

  start(): void {
    const { link } = this.#options;
    const { subscriber } = link;
    this.#unsubscribe.push(
      // In this order: if heartbeats arrive, changes do.
      subscriber.listen(changesChannel(link), (message) => this.#onChange(message)),
      subscriber.listen(this.#channel, (message) => this.#onHeartbeat(message)),
      subscriber.onDown(() => this.#loseSync()),
      // At once, so that the state does not wait for the next heartbeat.
      subscriber.onUp(() => void this.#beat()),
      link.onUp(() => void this.#beat()),
    );
    void this.#beat();
  }

  /** How far copies may be used now. */
  state(): SyncState {
    if (this.#nowMs() - this.#arrivedSentAtMs <= LOST_AFTER_MS) return 'synced';
    return this.#doesRedisAnswer && !this.#isUnanswered ? 'subscriptionLost' : 'disconnected';
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelNext();
    for (const end of this.#unsubscribe) end();
    this.#loseSync();
  }

  #nowMs(): number {
    return this.#options.clock.nowMicros() / 1000;
  }

  #loseSync(): void {
    this.#arrivedSentAtMs = Number.NEGATIVE_INFINITY;
    this.#sentAtMs.clear();
  }

  #onChange(message: string): void {
    const [, before, after = null, hashes] = CHANGE_MESSAGE.exec(message) ?? [];
    const isNext = before !== undefined && before === this.#version;
    this.#version = after;
    const isNamed = after !== null && hashes !== undefined && hashes !== '*';
    if (isNamed) this.#options.onChange(hashes.split(','), after);
    if (!isNext || !isNamed) this.#options.onGap();
  }

  #onHeartbeat(message: string): void {
    const [, number, version] = HEARTBEAT_MESSAGE.exec(message) ?? [];
    const sentAtMs = this.#sentAtMs.get(Number(number));
    if (version === undefined || sentAtMs === undefined) return;
    this.#sentAtMs.delete(Number(number));
    this.#missed = 0;
    if (version !== this.#version) {
      this.#version = version;
      this.#options.onGap();
    }
    this.#arrivedSentAtMs = Math.max(this.#arrivedSentAtMs, sentAtMs);
  }

  /** Sends a heartbeat, and the next one later. Never rejects. The command's own timeout bounds it. */
  async #beat(): Promise<void> {
    if (this.#isSending || this.#isClosed) return;
    const { link, timers, onState, onMissing } = this.#options;
    this.#cancelNext();
    // Now and not after the answer, which may come just before the heartbeat arrives.
    if (this.#lastNumber > 0) onState(this.state());
    if (this.#missed >= MAX_MISSED) onMissing();
    if (this.#missed % RECONNECT_AFTER_MISSED === RECONNECT_AFTER_MISSED - 1) link.subscriber.renew();
    this.#missed += 1;
    this.#isSending = true;
    const answered = timers.after(UNANSWERED_AFTER_MS, () => {
      this.#isUnanswered = true;
    });
    try {
      await runScript(link, HEARTBEAT, { keys: [VERSION], args: [this.#channel, this.#nextNumber()] });
      this.#doesRedisAnswer = true;
    } catch (error) {
      const code = replyCode(error);
      // A Redis that refuses a heartbeat can still be asked for keys, unless it refuses everything.
      this.#doesRedisAnswer = code !== null && !REFUSES_ALL.has(code);
      this.#missed = 0;
    }
    answered();
    this.#isSending = false;
    this.#isUnanswered = false;
    if (!this.#isClosed) this.#cancelNext = timers.after(HEARTBEAT_EVERY_MS, () => void this.#beat());
  }

  #nextNumber(): number {
    this.#lastNumber += 1;
    this.#sentAtMs.set(this.#lastNumber, this.#nowMs());
    this.#sentAtMs.delete(this.#lastNumber - MAX_AWAITED);
    return this.#lastNumber;
  }
}
