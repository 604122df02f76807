/** How many gateway processes share the quotas: each tells Redis that it lives, and counts those that did lately. */
import { randomUUID } from 'node:crypto';
import { membersKey } from '../redis/keys.ts';
import { defineScript, runScript } from '../redis/script.ts';
import type { RedisLink } from '../redis/link.ts';

const BEAT_EVERY_MS = 2000;
/** Several beats, so that one that is lost does not make a process count as gone. */
const ALIVE_FOR_MS = 10_000;
/** The largest of the last counts holds: a Redis that was just started again has not heard of all. */
const COUNTS_KEPT = 5;

/** KEYS: the members. ARGV: this member, how long one counts in milliseconds. Returns how many there are. */
const BEAT = defineScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', now - ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])
`);

export interface Members {
  /** How many processes there are, this one included, as far as was last known. */
  count(): number;
  /** Resolves once this process is counted no more, or Redis can't be told. */
  close(): Promise<void>;
}

export interface MembersOptions {
  readonly link: RedisLink;
  /** How many there are at least: the processes that this gateway itself runs. What is taken until Redis tells. */
  readonly atLeast: number;
  readonly beatEveryMs?: number | undefined;
}

class FleetMembers implements Members {
  readonly #link: RedisLink;
  readonly #id = randomUUID();
  readonly #atLeast: number;
  readonly #timer: NodeJS.Timeout;
  readonly #endUp: () => void;
  #counts: readonly number[] = [];
  #isClosed = false;

  constructor({ link, atLeast, beatEveryMs = BEAT_EVERY_MS }: MembersOptions) {
    this.#link = link;
    this.#atLeast = atLeast;
    this.#timer = setInterval(() => void this.#beat(), beatEveryMs).unref();
    this.#endUp = link.onUp(() => void this.#beat());
    void this.#beat();
  }

  count(): number {
    return Math.max(this.#atLeast, ...this.#counts);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#endUp();
    if (this.#link.isUp()) await this.#link.client.zrem(membersKey(), this.#id).catch(() => undefined);
  }

  /** Rejects never: without Redis the last count holds. */
  async #beat(): Promise<void> {
    if (!this.#link.isUp() || this.#isClosed) return;
    try {
      const count = await runScript(this.#link.client, BEAT, { keys: [membersKey()], args: [this.#id, ALIVE_FOR_MS] });
      if (typeof count === 'number') this.#counts = [...this.#counts, count].slice(-COUNTS_KEPT);
    } catch {
      // Told at the next beat.
    }
  }
}

export function createMembers(options: MembersOptions): Members {
  return new FleetMembers(options);
}
