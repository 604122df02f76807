/**
 * The processes of a fleet: each tells Redis again and again that it lives and what it is, and hears of those that did
 * so lately. One heartbeat for everything that goes by who is there.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { channelName, memberBeatsKey, membersKey } from './keys.ts';
import type { RedisLink } from './link.ts';
import { type AboutMember, aboutOf, type Member } from './member.ts';
import { defineScript, runScript } from './script.ts';

const BEAT_EVERY_MS = 2000;
/** Several beats, so that one that is lost does not make a process count as gone. */
const ALIVE_FOR_MS = 10_000;
/** Where a process tells that it is new, is otherwise than before, or goes: the others then look at once. */
const CHANNEL = channelName('members');
/** The largest count of so many beats' time holds: a Redis that was just started again has not heard of all. */
const COUNTS_HOLD_FOR_BEATS = 5;

/**
 * KEYS: the times of the beats, what each member tells. ARGV: this member, what it tells, how long one counts in
 * milliseconds. Returns all members and what they tell, in turn.
 */
const BEAT = defineScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local before = '(' .. string.format('%.0f', now - ARGV[3])
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', before)) do
  redis.call('ZREM', KEYS[1], gone)
  redis.call('HDEL', KEYS[2], gone)
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return redis.call('HGETALL', KEYS[2])
`);

export interface Members {
  /** Of this process. */
  readonly id: string;
  /** How many processes there are, this one included, as far as was last known. */
  count(): number;
  /** All of them by id, as last known; this one as it is now. */
  list(): readonly Member[];
  /** The ids of those in front of the same store, this one's among them, in order. */
  peers(): readonly string[];
  /** Tells the others how this process is from now on. */
  tell(status: AboutMember['status']): void;
  /** Resolves once this process is counted no more, or Redis can't be told. */
  close(): Promise<void>;
}

export interface MembersOptions {
  readonly link: RedisLink;
  readonly about: AboutMember;
  /** How many there are at least: the processes that this gateway itself runs. What is taken until Redis tells. */
  readonly atLeast: number;
  readonly beatEveryMs?: number | undefined;
}

interface Count {
  readonly count: number;
  /** By `performance.now`. */
  readonly atMs: number;
}

class FleetMembers implements Members {
  readonly id = randomUUID();
  readonly #link: RedisLink;
  readonly #atLeast: number;
  readonly #timer: NodeJS.Timeout;
  readonly #endings: readonly (() => void)[];
  #about: AboutMember;
  #others: readonly Member[] = [];
  readonly #countsHoldForMs: number;
  #counts: readonly Count[] = [];
  /** Whether the others have still to be told to look. */
  #isNews = true;
  #isClosed = false;

  constructor({ link, about, atLeast, beatEveryMs = BEAT_EVERY_MS }: MembersOptions) {
    this.#link = link;
    this.#about = about;
    this.#atLeast = atLeast;
    this.#countsHoldForMs = COUNTS_HOLD_FOR_BEATS * beatEveryMs;
    this.#timer = setInterval(() => void this.#beat(), beatEveryMs).unref();
    const beat = (): void => void this.#beat();
    this.#endings = [link.onUp(beat), link.subscriber.listen(CHANNEL, beat)];
    void this.#beat();
  }

  count(): number {
    return Math.max(this.#atLeast, ...this.#counts.map(({ count }) => count));
  }

  list(): readonly Member[] {
    return [{ id: this.id, ...this.#about }, ...this.#others].toSorted(byId);
  }

  peers(): readonly string[] {
    return this.list()
      .filter(({ store }) => store === this.#about.store)
      .map(({ id }) => id);
  }

  tell(status: AboutMember['status']): void {
    this.#about = { ...this.#about, status };
    this.#isNews = true;
    void this.#beat();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const end of this.#endings) end();
    if (!this.#link.isUp()) return;
    const { client } = this.#link;
    // In this order: what is left of a half of it goes by itself.
    await client.hdel(membersKey(), this.id).catch(() => undefined);
    await client.zrem(memberBeatsKey(), this.id).catch(() => undefined);
    await client.publish(CHANNEL, '').catch(() => undefined);
  }

  /** Rejects never: without Redis what was last known holds. */
  async #beat(): Promise<void> {
    if (!this.#link.isUp() || this.#isClosed) return;
    const isNews = this.#isNews;
    this.#isNews = false;
    const args = [this.id, JSON.stringify(this.#about), ALIVE_FOR_MS];
    try {
      const call = { keys: [memberBeatsKey(), membersKey()], args };
      this.#adopt(z.array(z.string()).parse(await runScript(this.#link.client, BEAT, call)));
      if (isNews) await this.#link.client.publish(CHANNEL, '');
    } catch {
      // Told at the next beat.
      this.#isNews ||= isNews;
    }
  }

  #adopt(reply: readonly string[]): void {
    const nowMs = performance.now();
    const held = this.#counts.filter(({ atMs }) => nowMs - atMs < this.#countsHoldForMs);
    this.#counts = [...held, { count: reply.length / 2, atMs: nowMs }];
    this.#others = reply.flatMap((id, index) => {
      const about = index % 2 === 0 && id !== this.id ? aboutOf(reply[index + 1]) : null;
      return about === null ? [] : [{ id, ...about }];
    });
  }
}

export function createMembers(options: MembersOptions): Members {
  return new FleetMembers(options);
}

/** Of a process that is alone. */
export function aloneMembers(about: AboutMember): Members {
  const id = randomUUID();
  let now = about;
  return {
    id,
    count: () => 1,
    list: () => [{ id, ...now }],
    peers: () => [id],
    tell: (status) => {
      now = { ...now, status };
    },
    close: async () => {},
  };
}

function byId(a: Member, b: Member): number {
  return a.id < b.id ? -1 : 1;
}
