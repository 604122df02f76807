/** How many calls a second may go to the store: of one process, or of all together, counted in Redis. */
import { z } from 'zod';
import type { Clock } from '../time/clock.ts';
import type { RedisLink } from '../redis/connection.ts';
import { defineScript, runScript } from '../redis/script.ts';
import type { Timers } from '../time/timers.ts';

export interface CallRate {
  /** True if a call may go now, which is then counted. Else `onMore` is called once, when it is of use to ask again. */
  take(onMore: () => void): boolean;
}

export interface CallRateOptions {
  /** Above 0; needn't be whole. */
  readonly perSecond: number;
  /** Null for a process that is alone. */
  readonly shared: SharedCallRate | null;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** The rate is that of all processes together. */
export interface SharedCallRate {
  /** To the state Redis. */
  readonly link: RedisLink;
  /** Where it is counted. */
  readonly key: string;
  /** How many processes there are, as far as is known. */
  readonly processes: () => number;
}

export function createCallRate({ shared, perSecond, clock, timers }: CallRateOptions): CallRate {
  if (shared === null) return createLocalCallRate({ perSecond: () => perSecond, clock, timers });
  return createSharedCallRate({ ...shared, perSecond, clock, timers });
}

interface LocalCallRateOptions extends Pick<CallRateOptions, 'clock' | 'timers'> {
  /** It changes with the number of processes while each goes on with its share. */
  readonly perSecond: () => number;
}

/** After a pause, the calls of so long may go at once. */
const BURST_MS = 100;

/** The rate of one process, counted in its memory: the generic cell rate algorithm (ITU-T I.371), with a small burst. */
function createLocalCallRate({ perSecond, clock, timers }: LocalCallRateOptions): CallRate {
  /** When all that went would have gone, one by one. */
  let theoreticalMs = 0;
  return {
    take: (onMore) => {
      const nowMs = clock.nowMicros() / 1000;
      const intervalMs = 1000 / perSecond();
      const nextMs = Math.max(theoreticalMs, nowMs) + intervalMs;
      const waitMs = nextMs - nowMs - Math.max(intervalMs, BURST_MS);
      if (waitMs > 0) {
        timers.after(Math.ceil(waitMs), onMore);
        return false;
      }
      theoreticalMs = nextMs;
      return true;
    },
  };
}

/** How long booked calls may be used. */
const BOOKING_HOLDS_MS = 100;
/** After Redis failed, this process goes on by itself for so long. */
const LOCAL_FOR_MS = 1000;
const MICROS = 1_000_000;
const TOO_FAR_AHEAD_MICROS = 10 * MICROS;

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

/**
 * The rate of all processes together. A process books several calls at once, so that a call seldom waits for Redis; booked
 * calls that are not used soon lapse. Without Redis each process goes on with its share.
 */
function createSharedCallRate(options: SharedCallRate & Omit<CallRateOptions, 'shared'>): CallRate {
  const { link, key, perSecond, processes, clock, timers } = options;
  const local = createLocalCallRate({ perSecond: () => perSecond / processes(), clock, timers });
  const nowMs = (): number => clock.nowMicros() / 1000;
  let booked = { calls: 0, untilMs: 0 };
  let localUntilMs = Number.NEGATIVE_INFINITY;

  /** Never rejects. */
  const book = async (onMore: () => void): Promise<void> => {
    const intervalMicros = MICROS / perSecond;
    const burstMicros = Math.max(intervalMicros, BURST_MS * 1000);
    const calls = Math.max(1, Math.floor(burstMicros / intervalMicros / processes()));
    const args = [intervalMicros, burstMicros, calls, TOO_FAR_AHEAD_MICROS];
    try {
      const waitMicros = z.int().parse(await runScript(link, BOOK, { keys: [key], args }));
      timers.after(Math.ceil(waitMicros / 1000), () => {
        booked = { calls, untilMs: nowMs() + BOOKING_HOLDS_MS };
        onMore();
      });
    } catch {
      // The link reports that Redis fails.
      localUntilMs = nowMs() + LOCAL_FOR_MS;
      onMore();
    }
  };

  return {
    take: (onMore) => {
      if (booked.calls > 0 && nowMs() < booked.untilMs) {
        booked.calls -= 1;
        return true;
      }
      if (!link.isUp() || nowMs() < localUntilMs) return local.take(onMore);
      void book(onMore);
      return false;
    },
  };
}
