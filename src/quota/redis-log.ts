/**
 * The logs of quotas' admitted requests in Redis, decided on as `decide` does, by Redis's own clock, for all requests of
 * one call at once: first come, first admitted.
 */
import type { RedisClient } from '../redis/client.ts';
import { quotaLogKey } from '../redis/keys.ts';
import { runScript } from '../redis/script.ts';
import type { QuotaWindows } from './log.ts';
import type { QuotaLimits } from './quota.ts';
import { TAKE } from './redis-log-script.ts';

/** Requests that came one after another with the same limits. None at all is a look: it changes nothing. */
export interface RequestRun {
  readonly limits: QuotaLimits;
  readonly count: number;
}

/** A window before the first request of the call. */
export interface WindowUse {
  readonly used: number;
  /** Time of its oldest entry; null where it is empty. */
  readonly oldestMicros: number | null;
}

/** What became of one run: the first `admitted` were admitted, the rest refused. */
export interface RunOutcome {
  readonly admitted: number;
  /** For the refused ones, the first microsecond at which each window has room; null where it has some now. */
  readonly minuteRoomAtMicros: number | null;
  readonly hourRoomAtMicros: number | null;
}

/** What the script found and did. All times are Unix microseconds by Redis's clock. */
export interface LogReply {
  readonly nowMicros: number;
  readonly minute: WindowUse;
  readonly hour: WindowUse;
  /** Time of the newest entry before the call; null where the log was empty. */
  readonly newestMicros: number | null;
  readonly outcomes: readonly RunOutcome[];
  /**
   * Where the last request was refused: times of the oldest entries of each window, in order, as far as they leave it
   * before there is room, and one more; `MOST_LEAVING` at most. Of what is in the window after the call.
   */
  readonly leaving: { readonly minute: readonly number[]; readonly hour: readonly number[] } | null;
}

/** Most requests of one call: what fits on the stack of Lua's `unpack`, with room to spare. */
export const MOST_REQUESTS = 1000;

/** A reply of Redis that is not what the script returns. */
class UnexpectedReply extends Error {
  constructor(reply: unknown) {
    super(`The quota's script returned something else than it should: ${JSON.stringify(reply)?.slice(0, 200)}`);
    this.name = 'UnexpectedReply';
  }
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isTimes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every(isTime);
}

function orNull(micros: number): number | null {
  return micros === 0 ? null : micros;
}

/** What the script returns of one log: six numbers, two lists, then three numbers a run. */
function parseReply(reply: unknown, runs: number): LogReply {
  if (!Array.isArray(reply) || reply.length !== 8 + 3 * runs) throw new UnexpectedReply(reply);
  const values: readonly unknown[] = reply;
  const timeAt = (index: number): number => {
    const value = values[index];
    if (!isTime(value)) throw new UnexpectedReply(reply);
    return value;
  };
  const minuteLeaving = values[6];
  const hourLeaving = values[7];
  if (!isTimes(minuteLeaving) || !isTimes(hourLeaving)) throw new UnexpectedReply(reply);
  const outcomes: RunOutcome[] = [];
  for (let at = 8; at < values.length; at += 3) {
    outcomes.push({
      admitted: timeAt(at),
      minuteRoomAtMicros: orNull(timeAt(at + 1)),
      hourRoomAtMicros: orNull(timeAt(at + 2)),
    });
  }
  return {
    nowMicros: timeAt(0),
    minute: { used: timeAt(1), oldestMicros: orNull(timeAt(2)) },
    hour: { used: timeAt(3), oldestMicros: orNull(timeAt(4)) },
    newestMicros: orNull(timeAt(5)),
    outcomes,
    leaving: hourLeaving.length === 0 ? null : { minute: minuteLeaving, hour: hourLeaving },
  };
}

/** Requests of one quota. */
export interface QuotaRequests {
  readonly quotaId: string;
  readonly runs: readonly RequestRun[];
}

/**
 * Decides on all requests of the quotas, `MOST_REQUESTS` together at most, in one call; a quota whose log can't be decided
 * on has an Error in its place. Sent once: where it rejects, it may have been done or not.
 */
export async function takeFromLogs(
  client: RedisClient,
  quotas: readonly QuotaRequests[],
  windows: QuotaWindows,
): Promise<readonly (LogReply | Error)[]> {
  const args: number[] = [windows.minuteMicros, windows.hourMicros];
  for (const { runs } of quotas) {
    args.push(runs.length);
    for (const { limits, count } of runs) args.push(count, limits.perMinute, limits.perHour);
  }
  const replies = await runScript(client, TAKE, { keys: quotas.map(({ quotaId }) => quotaLogKey(quotaId)), args });
  if (!Array.isArray(replies) || replies.length !== quotas.length) throw new UnexpectedReply(replies);
  return quotas.map(({ runs }, index) => {
    const reply: unknown = replies[index];
    return typeof reply === 'string' ? new Error(reply) : parseReply(reply, runs.length);
  });
}
