/**
 * The logs of quotas' admitted requests in Redis, decided on as `decide` does, by Redis's own clock, for all requests of
 * one call at once: first come, first admitted.
 */
import type { RedisCommands } from '../redis/connection.ts';
import { quotaLogKey } from '../redis/names.ts';
import { runScriptForBytes } from '../redis/script.ts';
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

/** How many of the call's requests were admitted. */
export function admittedOf({ outcomes }: LogReply): number {
  let sum = 0;
  for (const { admitted } of outcomes) sum += admitted;
  return sum;
}

/** Most requests of one call: what fits on the stack of Lua's `unpack`, with room to spare. */
export const MOST_REQUESTS = 1000;

/** A reply of Redis that is not what the script returns. */
/** The error reply of one log, which the script passes on. */
class LogReplyError extends Error {
  override readonly name = 'ReplyError';
}

class UnexpectedReply extends Error {
  constructor(reply: unknown) {
    super(`The quota's script returned something else than it should: ${JSON.stringify(reply)?.slice(0, 200)}`);
    this.name = 'UnexpectedReply';
  }
}

/** Stands for a log that could not be decided on. */
const FAILED = -1;
const BYTES_OF_NUMBER = 8;

/** The numbers of a reply, in the order of the script's. */
class ReplyNumbers {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  next(): number {
    if (this.#at + BYTES_OF_NUMBER > this.#bytes.length) throw new UnexpectedReply(this.#bytes);
    const value = this.#bytes.readDoubleLE(this.#at);
    if (!Number.isSafeInteger(value)) throw new UnexpectedReply(this.#bytes);
    this.#at += BYTES_OF_NUMBER;
    return value;
  }

  /** Of what may be nothing at all. */
  nextOrNull(): number | null {
    const value = this.next();
    return value === 0 ? null : value;
  }

  list(length: number): number[] {
    const values: number[] = [];
    for (let i = 0; i < length; i += 1) values.push(this.next());
    return values;
  }
}

/** What the script returns of one log; null where it failed. */
function readReply(numbers: ReplyNumbers, runs: number): LogReply | null {
  const minuteLeaving = numbers.next();
  if (minuteLeaving === FAILED) return null;
  const hourLeaving = numbers.next();
  const nowMicros = numbers.next();
  const minute = { used: numbers.next(), oldestMicros: numbers.nextOrNull() };
  const hour = { used: numbers.next(), oldestMicros: numbers.nextOrNull() };
  const newestMicros = numbers.nextOrNull();
  const outcomes: RunOutcome[] = [];
  for (let run = 0; run < runs; run += 1) {
    const admitted = numbers.next();
    outcomes.push({ admitted, minuteRoomAtMicros: numbers.nextOrNull(), hourRoomAtMicros: numbers.nextOrNull() });
  }
  const leaving = hourLeaving === 0 ? null : { minute: numbers.list(minuteLeaving), hour: numbers.list(hourLeaving) };
  return { nowMicros, minute, hour, newestMicros, outcomes, leaving };
}

function readReplies(reply: unknown, quotas: readonly QuotaRequests[]): readonly (LogReply | Error)[] {
  if (!Array.isArray(reply)) throw new UnexpectedReply(reply);
  const parts: readonly unknown[] = reply;
  const [bytes, ...failures] = parts;
  if (!Buffer.isBuffer(bytes)) throw new UnexpectedReply(reply);
  const numbers = new ReplyNumbers(bytes);
  const replies = quotas.map(
    ({ runs }) => readReply(numbers, runs.length) ?? new LogReplyError(String(failures.shift())),
  );
  if (!numbers.isAtEnd || failures.length > 0) throw new UnexpectedReply(reply);
  return replies;
}

/** Requests of one quota. */
export interface QuotaRequests {
  readonly quotaId: string;
  readonly runs: readonly RequestRun[];
}

/** How many requests of the last minute a quota was last known to have; 0 where nothing is known. It only saves work. */
export type ExpectedUse = (quotaId: string) => number;

/**
 * Decides on all requests of the quotas, `MOST_REQUESTS` together at most, in one call; a quota whose log can't be decided
 * on has an Error in its place. Sent once: where it rejects, it may have been done or not.
 */
export async function takeFromLogs(
  redis: RedisCommands,
  quotas: readonly QuotaRequests[],
  windows: QuotaWindows,
  expectedUse: ExpectedUse = () => 0,
): Promise<readonly (LogReply | Error)[]> {
  const numbers: number[] = [];
  for (const { quotaId, runs } of quotas) {
    numbers.push(expectedUse(quotaId), runs.length);
    for (const { limits, count } of runs) numbers.push(count, limits.perMinute, limits.perHour);
  }
  const reply = await runScriptForBytes(redis, TAKE, {
    keys: quotas.map(({ quotaId }) => quotaLogKey(quotaId)),
    args: [windows.minuteMicros, windows.hourMicros, numbers.join(' ')],
  });
  return readReplies(reply, quotas);
}
