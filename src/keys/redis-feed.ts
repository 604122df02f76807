/**
 * Hears of every change of the key registry, and knows when it doesn't. Four times a second the process sends itself a
 * beat through Redis, on the way that changes take too. A beat that arrives proves that everything published before it
 * was sent has arrived, and it carries the registry's version: another one than that of the last change heard of means
 * that some were missed. So a connection that is cut is noticed at once, and one that silently delivers nothing, or
 * delivers late, after `DEAF_AFTER_MS` at the latest.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { channelName } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import { type RedisLink, replyCode } from '../redis/connection.ts';
import type { KeyHash } from './key.ts';
import type { Trust } from './known-keys.ts';
import { parseBeat, parseChange } from './redis-feed-messages.ts';
import { changesChannel, VERSION } from './redis-key-table.ts';

const BEAT_EVERY_MS = 250;
/** Since the last beat that arrived was sent. Longer than a beat that isn't answered takes to be given up. */
const DEAF_AFTER_MS = 900;
/** A beat that Redis hasn't answered for so long won't be: whatever else is silent is so for the same reason. */
const UNANSWERED_AFTER_MS = 100;
/** Just cut off or just back, a process misses one at most. */
const MAX_UNHEARD = 2;
const MAX_AWAITED_BEATS = 8;
/** After so many that were answered and not heard, and again after as many, the connection for messages is made anew. */
const RENEW_AFTER_UNHEARD = 8;
/** Refusals of whatever is asked: a Cluster without most of its primaries, a Redis that reads its data or lost its primary. */
const REFUSES_ALL = new Set(['CLUSTERDOWN', 'LOADING', 'MASTERDOWN']);

const BEAT = defineScript(
  'keysBeat',
  `
redis.call('PUBLISH', ARGV[1], ARGV[2] .. ' ' .. (redis.call('GET', KEYS[1]) or '-'))
return 1
`,
);

export interface RedisFeedOptions {
  readonly link: RedisLink;
  readonly clock: Clock;
  /** These keys were changed, which made that version. */
  readonly onChanged: (hashes: readonly KeyHash[], version: string) => void;
  /** Changes were missed: any key may have changed. */
  readonly onMissed: () => void;
  /** Beats that Redis has answered are not heard any more. */
  readonly onDeaf: () => void;
  /** Before each beat but the first: what came of those before. */
  readonly onBeat: (trust: Trust) => void;
}

export class RedisFeed {
  readonly #options: RedisFeedOptions;
  readonly #beatChannel = channelName('keys', 'beat', randomUUID());
  readonly #endings: (() => void)[] = [];
  /** When the beats that may still arrive were sent. */
  readonly #sentAtMs = new Map<number, number>();
  #timer: NodeJS.Timeout | undefined;
  #lastNumber = 0;
  /** When the beat under way was sent, by performance.now(). */
  #beatingSinceMs: number | null = null;
  #isClosed = false;
  /** Beats in a row that were answered and not heard, with the one under way. */
  #unheard = 0;
  #version: string | null = null;
  #heardAtMs = Number.NEGATIVE_INFINITY;
  #doesRedisAnswer = false;

  constructor(options: RedisFeedOptions) {
    this.#options = options;
  }

  start(): void {
    const { link } = this.#options;
    const { subscriber } = link;
    this.#endings.push(
      // In this order: where beats arrive, changes do.
      subscriber.listen(changesChannel(link), (message) => this.#hearChange(message)),
      subscriber.listen(this.#beatChannel, (message) => this.#hearBeat(message)),
      subscriber.onDown(() => this.#lose()),
      // Not to wait for the next beat when there is something to hear again.
      subscriber.onUp(() => void this.#beat()),
      link.onUp(() => void this.#beat()),
    );
    void this.#beat();
  }

  /** How far what is remembered can be trusted now. */
  trust(): Trust {
    if (this.#nowMs() - this.#heardAtMs <= DEAF_AFTER_MS) return 'heard';
    return this.#doesRedisAnswer && !this.#isUnanswered() ? 'deaf' : 'offline';
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const end of this.#endings) end();
    this.#lose();
  }

  #nowMs(): number {
    return this.#options.clock.nowMicros() / 1000;
  }

  #lose(): void {
    this.#heardAtMs = Number.NEGATIVE_INFINITY;
    this.#sentAtMs.clear();
  }

  #hearChange(message: string): void {
    const change = parseChange(message);
    const isNext = change !== null && change.before === this.#version;
    this.#version = change?.after ?? null;
    if (change !== null && change.hashes !== null) this.#options.onChanged(change.hashes, change.after);
    if (!isNext || change.hashes === null) this.#options.onMissed();
  }

  #hearBeat(message: string): void {
    const beat = parseBeat(message);
    const sentAtMs = beat === null ? undefined : this.#sentAtMs.get(beat.number);
    if (beat === null || sentAtMs === undefined) return;
    this.#sentAtMs.delete(beat.number);
    this.#unheard = 0;
    if (beat.version !== this.#version) {
      this.#version = beat.version;
      this.#options.onMissed();
    }
    this.#heardAtMs = Math.max(this.#heardAtMs, sentAtMs);
  }

  /** Never rejects. The command's own timeout bounds it. */
  async #beat(): Promise<void> {
    if (this.#beatingSinceMs !== null || this.#isClosed) return;
    clearTimeout(this.#timer);
    // Now and not with the answer, which may come just before what it answers is heard.
    if (this.#lastNumber > 0) this.#options.onBeat(this.trust());
    if (this.#unheard >= MAX_UNHEARD) this.#options.onDeaf();
    if (this.#unheard % RENEW_AFTER_UNHEARD === RENEW_AFTER_UNHEARD - 1) this.#options.link.subscriber.renew();
    this.#unheard += 1;
    const startedAtMs = performance.now();
    this.#beatingSinceMs = startedAtMs;
    try {
      await runScript(this.#options.link, BEAT, {
        keys: [VERSION],
        args: [this.#beatChannel, this.#nextNumber()],
      });
      this.#doesRedisAnswer = true;
    } catch (error) {
      const code = replyCode(error);
      // A Redis that refuses a beat can still be asked, unless it is that it can't be.
      this.#doesRedisAnswer = code !== null && !REFUSES_ALL.has(code);
      this.#unheard = 0;
    }
    this.#beatingSinceMs = null;
    if (this.#isClosed) return;
    const pauseMs = Math.max(0, BEAT_EVERY_MS - (performance.now() - startedAtMs));
    this.#timer = setTimeout(() => void this.#beat(), pauseMs).unref();
  }

  #isUnanswered(): boolean {
    return this.#beatingSinceMs !== null && performance.now() - this.#beatingSinceMs > UNANSWERED_AFTER_MS;
  }

  #nextNumber(): number {
    this.#lastNumber += 1;
    this.#sentAtMs.set(this.#lastNumber, this.#nowMs());
    this.#sentAtMs.delete(this.#lastNumber - MAX_AWAITED_BEATS);
    return this.#lastNumber;
  }
}
