/**
 * The rate of all processes together, counted in Redis. A process takes leave for several calls at once, so that a call
 * seldom waits for Redis; leave that is not used soon lapses. Without Redis each process goes on with its share.
 */
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { callRateKey } from '../redis/names.ts';
import type { RedisLink } from '../redis/connection.ts';
import { defineScript, runScript } from '../redis/script.ts';
import type { Timers } from '../timers.ts';
import { BURST_MS, type CallRate, createLocalCallRate } from './call-rate.ts';

export interface RedisCallRateOptions {
  /** To the state Redis. */
  readonly link: RedisLink;
  /** Names the store among others. */
  readonly store: string;
  readonly perSecond: number;
  /** How many processes there are, as far as is known. */
  readonly processes: () => number;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** How long leave holds that was taken for calls to come. */
const LEAVE_HOLDS_MS = 100;
/** After Redis failed, this process goes on by itself for so long. */
const ALONE_FOR_MS = 1000;
const MICROS = 1_000_000;
const TOO_FAR_AHEAD_MICROS = 10 * MICROS;

const replySchema = z.int();

/**
 * The generic cell rate algorithm by Redis's clock, for several calls at once, which are booked ahead: so everyone who
 * asks gets its turn. KEYS: when all that were booked will have gone, one by one, in microseconds. ARGV: the time between
 * two calls, the burst, how many are wanted, and how far ahead is too far: then Redis's clock was set back. Returns after
 * how long they may go.
 */
const BOOK = defineScript(
  'bookCalls',
  `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local from = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
if from > now + tonumber(ARGV[4]) then from = now end
local to = from + ARGV[1] * ARGV[3]
redis.call('SET', KEYS[1], string.format('%.0f', to), 'PX', math.ceil((to - now) / 1000) + 1000)
return math.max(0, math.ceil(to - ARGV[2] - now))
`,
);

class RedisCallRate implements CallRate {
  readonly #options: RedisCallRateOptions;
  readonly #alone: CallRate;
  #leave = { calls: 0, untilMs: 0 };
  #aloneUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: RedisCallRateOptions) {
    this.#options = options;
    const { perSecond, processes, clock, timers } = options;
    this.#alone = createLocalCallRate({ perSecond: () => perSecond / processes(), clock, timers });
  }

  take(whenMore: () => void): boolean {
    const nowMs = this.#nowMs();
    if (this.#leave.calls > 0 && nowMs < this.#leave.untilMs) {
      this.#leave.calls -= 1;
      return true;
    }
    if (!this.#options.link.isUp() || nowMs < this.#aloneUntilMs) return this.#alone.take(whenMore);
    void this.#ask(whenMore);
    return false;
  }

  /** Rejects never. */
  async #ask(whenMore: () => void): Promise<void> {
    const { link, store, perSecond, processes, timers } = this.#options;
    const intervalMicros = MICROS / perSecond;
    const burstMicros = Math.max(intervalMicros, BURST_MS * 1000);
    const calls = Math.max(1, Math.floor(burstMicros / intervalMicros / processes()));
    try {
      const asked = { keys: [callRateKey(store)], args: [intervalMicros, burstMicros, calls, TOO_FAR_AHEAD_MICROS] };
      const waitMicros = replySchema.parse(await runScript(link, BOOK, asked));
      timers.after(Math.ceil(waitMicros / 1000), () => {
        this.#leave = { calls, untilMs: this.#nowMs() + LEAVE_HOLDS_MS };
        whenMore();
      });
    } catch {
      // That Redis fails is told by its link.
      this.#aloneUntilMs = this.#nowMs() + ALONE_FOR_MS;
      whenMore();
    }
  }

  #nowMs(): number {
    return this.#options.clock.nowMicros() / 1000;
  }
}

export function createRedisCallRate(options: RedisCallRateOptions): CallRate {
  return new RedisCallRate(options);
}
