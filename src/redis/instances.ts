/**
 * The gateway processes over one Redis: each reports by heartbeat that it runs and what it is, and reads which others did
 * so lately.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { RedisLink } from './connection.ts';
import { channelName, HEARTBEATS_KEY, INSTANCES_KEY, VANISHED_KEY } from './names.ts';
import { CLOCK_TOLERANCE_MS } from '../time/clock.ts';
import { defineScript, runScript } from './script.ts';

const BEAT_EVERY_MS = 2000;
/** Several beats, so that a process does not count as gone for one lost beat. */
export const ALIVE_FOR_MS = 10_000;
/** No copy is kept for longer in Redis; a process that was stopped for so long drops its memory when it goes on. */
const VANISHED_FOR_MS = 31 * 24 * 60 * 60 * 1000;
/** Where a process announces that it is new, has changed, or stops: the others then look at once. */
const CHANNEL = channelName('members');
/** The largest count of that time holds: a Redis that has just restarted has not heard of all processes. */
const COUNTS_HOLD_MS = 5 * BEAT_EVERY_MS;
/** After so long without an answer, the heartbeats of the others may have expired too. */
const OUTAGE_MS = 2 * BEAT_EVERY_MS;

const infoSchema = z.object({
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  /** Unix milliseconds. */
  startedAtMs: z.int(),
  status: z.enum(['starting', 'ready', 'draining']),
  /** Names the store behind the process: two processes over one Redis may have different ones. */
  store: z.string(),
  /** How far the clock of the process is ahead of Redis's, in whole seconds; 0 if they agree. Earlier releases report none. */
  clockAheadMs: z.int().default(0),
  /** For 0.3, which forgets purges only if all processes take part. */
  forgetsPurges: z.boolean().default(false),
  /** Whether it knows what others change by the journal. Releases before 0.4 report none, and do not. */
  usesJournal: z.boolean().default(false),
});

/** The report of a process about itself. */
export type InstanceInfo = Readonly<z.output<typeof infoSchema>>;

export interface Instance extends InstanceInfo {
  readonly id: string;
  /** The time since its last heartbeat; 0 for this process. */
  readonly heardMsAgo: number;
}

/** Null for what another release reports in another form: such a process counts, and no more is known of it. */
function infoOf(text: string): InstanceInfo | null {
  try {
    return infoSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/**
 * KEYS: the times of the beats, the reports of the instances, those that vanished. ARGV: this instance, its report, how long
 * one counts in milliseconds, the channel where a new report is announced, how long one that vanished is remembered. Returns
 * Redis's time, and all instances, their reports, and the time since their last beat in milliseconds, in turn.
 *
 * Most beats find nobody new and nobody gone, and only write their time. The rest is done when somebody is, and once per hour,
 * so that nothing expires that is in use.
 */
const BEAT = defineScript(
  'instanceBeat',
  `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local beats, reports = {}, {}
local scores = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for i = 1, #scores, 2 do beats[scores[i]] = tonumber(scores[i + 1]) end
local fields = redis.call('HGETALL', KEYS[2])
for i = 1, #fields, 2 do reports[fields[i]] = fields[i + 1] end
local last, isChanged = beats[ARGV[1]] or 0, false
for id, beat in pairs(beats) do
  if beat < now - ARGV[3] and id ~= ARGV[1] then
    redis.call('ZREM', KEYS[1], id)
    redis.call('HDEL', KEYS[2], id)
    redis.call('ZADD', KEYS[3], now, id)
    reports[id], isChanged = nil, true
  end
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
beats[ARGV[1]] = now
if reports[ARGV[1]] ~= ARGV[2] then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  redis.call('PUBLISH', ARGV[4], '')
  reports[ARGV[1]], isChanged = ARGV[2], true
end
if isChanged or math.floor(last / 3600000) ~= math.floor(now / 3600000) then
  redis.call('ZREM', KEYS[3], ARGV[1])
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - ARGV[5])
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[5]) end
end
local instances = {}
for id, report in pairs(reports) do
  table.insert(instances, {id, report, string.format('%.0f', now - (beats[id] or now))})
end
return {string.format('%.0f', now), instances}
`,
);

const replySchema = z.tuple([z.coerce.number(), z.array(z.tuple([z.string(), z.string(), z.coerce.number()]))]);

export interface InstancesOptions {
  /** Null for a process without Redis, which is the only one. */
  readonly link: RedisLink | null;
  readonly about: InstanceInfo;
  /** How many there are at least: the processes that this gateway itself runs. Taken until Redis answers. */
  readonly atLeast: number;
}

export class Instances {
  /** The id of this process. */
  readonly id = randomUUID();
  readonly #link: RedisLink | null;
  readonly #atLeast: number;
  readonly #timer: NodeJS.Timeout;
  readonly #stops: readonly (() => void)[];
  #about: InstanceInfo;
  #others: readonly Instance[] = [];
  /** When the others were read, by `performance.now`. */
  #readAtMs = 0;
  /** The last beats' counts, with their times by `performance.now`. */
  #counts: readonly { readonly count: number; readonly atMs: number }[] = [];
  #isClosed = false;

  constructor({ link, about, atLeast }: InstancesOptions) {
    this.#link = link;
    this.#about = about;
    this.#atLeast = atLeast;
    const beat = (): void => void this.#beat();
    this.#timer = setInterval(beat, BEAT_EVERY_MS).unref();
    this.#stops = link === null ? [] : [link.onUp(beat), link.subscriber.listen(CHANNEL, beat)];
    beat();
  }

  /** How many processes there are, this one included, as last known. */
  count(): number {
    return Math.max(this.#atLeast, ...this.#counts.map(({ count }) => count));
  }

  /** All of them by id, as last known; this one as it is now. */
  list(): readonly Instance[] {
    const sinceMs = performance.now() - this.#readAtMs;
    const others = this.#others.map((other) => ({ ...other, heardMsAgo: Math.round(other.heardMsAgo + sinceMs) }));
    return [{ id: this.id, ...this.#about, heardMsAgo: 0 }, ...others].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** How far this process's clock is ahead of Redis's, as the last heartbeat found it; 0 if they agree within two seconds. */
  get clockAheadMs(): number {
    return this.#about.clockAheadMs;
  }

  isConnected(): boolean {
    return this.#link?.isUp() ?? true;
  }

  /** Why this process does not hear of the others: Redis does not answer, or refuses heartbeats; null if it does. */
  problem(): string | null {
    const refusal = this.#link?.refusal ?? null;
    if (refusal !== null) return `Redis ${refusal.finding}`;
    return this.isConnected() ? null : 'Redis does not answer';
  }

  /** The ids of those with the same store, this one's among them, in order. */
  peers(): readonly string[] {
    return this.list()
      .filter(({ store }) => store === this.#about.store)
      .map(({ id }) => id);
  }

  /**
   * The ids of all that run, and of those that vanished without a goodbye, unless they are named as gone, which is remembered.
   * Rejects if Redis can't be asked.
   */
  async known(gone: readonly string[]): Promise<readonly string[]> {
    const link = this.#link;
    if (link === null) return [this.id];
    const [ids, vanished] = await link.run(async (client) => {
      if (gone.length > 0) {
        await Promise.all([client.zrem(VANISHED_KEY, ...gone), client.zrem(HEARTBEATS_KEY, ...gone)]);
        await client.hdel(INSTANCES_KEY, ...gone);
      }
      return Promise.all([client.zrange(HEARTBEATS_KEY, '0', '-1'), client.zrange(VANISHED_KEY, '0', '-1')]);
    });
    return [...new Set([this.id, ...ids, ...vanished])].toSorted();
  }

  /** Announces the status of this process. */
  setStatus(status: InstanceInfo['status']): void {
    this.#about = { ...this.#about, status };
    void this.#beat();
  }

  /** Resolves once this process is no longer counted, or Redis can't be reached. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const stop of this.#stops) stop();
    const link = this.#link;
    if (link?.isUp() !== true) return;
    try {
      await link.run((client) => client.hdel(INSTANCES_KEY, this.id));
      await link.run((client) => client.zrem(HEARTBEATS_KEY, this.id));
      await link.run((client) => client.publish(CHANNEL, ''));
    } catch {
      // The rest expires.
    }
  }

  /** Never rejects: without Redis, what was last known holds. */
  async #beat(): Promise<void> {
    const link = this.#link;
    if (link?.isUp() !== true || this.#isClosed) return;
    const args = [this.id, JSON.stringify(this.#about), ALIVE_FOR_MS, CHANNEL, VANISHED_FOR_MS];
    const sentAtMs = Date.now();
    try {
      const reply = await runScript(link, BEAT, { keys: [HEARTBEATS_KEY, INSTANCES_KEY, VANISHED_KEY], args });
      const [redisMs, instances] = replySchema.parse(reply);
      this.#compareClocks(redisMs, sentAtMs, Date.now());
      this.#adopt(instances);
    } catch {
      // The link knows why.
    }
  }

  /** C9: Redis judges the skew between processes. It read its clock between the two times of ours: within them nothing is known. */
  #compareClocks(redisMs: number, sentAtMs: number, receivedAtMs: number): void {
    const aheadMs = sentAtMs > redisMs ? sentAtMs - redisMs : Math.min(0, receivedAtMs - redisMs);
    const clockAheadMs = Math.abs(aheadMs) > CLOCK_TOLERANCE_MS ? Math.round(aheadMs / 1000) * 1000 : 0;
    if (clockAheadMs !== this.#about.clockAheadMs) this.#about = { ...this.#about, clockAheadMs };
  }

  #adopt(reply: z.output<typeof replySchema>[1]): void {
    const nowMs = performance.now();
    const isAfterOutage = nowMs - this.#readAtMs > OUTAGE_MS;
    const held = isAfterOutage
      ? [{ count: this.count(), atMs: nowMs }]
      : this.#counts.filter(({ atMs }) => nowMs - atMs < COUNTS_HOLD_MS);
    this.#counts = [...held, { count: reply.length, atMs: nowMs }];
    this.#readAtMs = nowMs;
    this.#others = reply.flatMap(([id, report, heardMsAgo]) => {
      const about = id === this.id ? null : infoOf(report);
      return about === null ? [] : [{ id, ...about, heardMsAgo }];
    });
  }
}
