/**
 * evalgate 0.3 and 0.4 side by side over one Redis, during a rollout and back: purges, times, maintenance and changes of keys by
 * one are in force at the other, within a second. 0.5 deletes this file, with all that is there for 0.3 alone: settings-of-0.3.ts,
 * `from03` in events, `usesJournal` and `forgetsPurges` in redis/instances.ts, and cache/redis/copies-of-0.3.ts.
 *
 * 0.3 keeps purges in a list, times in a hash and maintenance in a field (`evalgate:{cache}:...`), names the state of its key
 * registry by a random version, and announces all changes on two channels. Key records and quotas are the same ones. Each
 * process of 0.4 compares those with the journal: at each event, at each message of 0.3, and twice a second.
 *
 * - Times and maintenance have three values: 0.3's, the journal's, and the one that both had last (`bridge:...` in the hash of
 *   the journal). The one that differs from that was changed, and is taken over; if both were, 0.3's is.
 * - A purge or a change of keys by 0.3 becomes an event, once: the script that appends it moves on how far 0.3's were taken
 *   over. An event of 0.4 becomes a purge or a version of 0.3, once, with a name that begins with `0.4-`.
 * - It is over a day after the last process of 0.3 was seen: what 0.3 left is unlinked, in the cache Redis too
 *   (cache/redis/copies-of-0.3.ts). To go back after that, set times and maintenance anew.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../time/clock.ts';
import { oneAtATime } from '../time/single-flight.ts';
import type { Timers } from '../time/timers.ts';
import type { RedisLink } from '../redis/connection.ts';
import { channelName, registryKey, taggedKey } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import { parsed } from './events.ts';
import type { EventOf } from './journal.ts';
import type { RedisJournal } from './redis-journal.ts';
import { STATE_KEY } from './scripts.ts';
import { canonical, eventOf, fieldsOf, MAINTENANCE, readTimes, type Settings } from './settings-of-0.3.ts';

const HEAD = taggedKey('cache', 'head');
const PURGES = taggedKey('cache', 'purges');
const KEPT = taggedKey('cache', 'kept');
const TIMES = taggedKey('cache', 'times');
const VERSION = registryKey('version');
const LEFT_BEHIND = [HEAD, PURGES, KEPT, TIMES] as const;

const LOOK_EVERY_MS = 500;
const NOTE_SEEN_EVERY_MS = 60_000;
const OVER_AFTER_MS = 24 * 60 * 60 * 1000;
/** 0.3 counts copies from before the purges that are cut off as purged. */
const KEPT_PURGES = 10_000;
const OURS = '0.4-';

/** KEYS: head, purges. ARGV: channel, the position of the event in the journal (history and number), the purge, a new history. */
const TELL_PURGE = defineScript(
  'tellPurgeTo03',
  `
local told = redis.call('HGET', KEYS[1], 'told') or ''
local history, sequence = string.match(ARGV[2], '^(%S+) (%d+)$')
local toldHistory, toldSequence = string.match(told, '^(%S+) (%d+)$')
if toldHistory == history and tonumber(toldSequence) >= tonumber(sequence) then return 0 end
redis.call('LTRIM', KEYS[2], -${KEPT_PURGES}, -1)
redis.call('HSET', KEYS[1], 'told', ARGV[2])
redis.call('HSETNX', KEYS[1], 'history', ARGV[4])
local position = redis.call('HINCRBY', KEYS[1], 'sequence', 1)
redis.call('RPUSH', KEYS[2], ARGV[3])
local message = redis.call('HGET', KEYS[1], 'history') .. ' ' .. position .. ' ' .. ARGV[3]
redis.call('PUBLISH', ARGV[1], 'purge ' .. message)
return 1
`,
);

/**
 * KEYS: head, times. ARGV: channel, a version, then 1 (head) or 2 (times), field, the value that is replaced and the one that takes
 * its place; empty for none. Does nothing if one of them is another by now: 0.3 has changed it meanwhile.
 */
const TELL_SETTINGS = defineScript(
  'tellSettingsTo03',
  `
for i = 3, #ARGV, 4 do
  if (redis.call('HGET', KEYS[tonumber(ARGV[i])], ARGV[i + 1]) or '') ~= ARGV[i + 2] then return 0 end
end
redis.call('HDEL', KEYS[1], 'times')
redis.call('HSET', KEYS[1], 'times', ARGV[2])
for i = 3, #ARGV, 4 do
  local key = KEYS[tonumber(ARGV[i])]
  redis.call('HDEL', key, ARGV[i + 1])
  if ARGV[i + 3] ~= '' then redis.call('HSET', key, ARGV[i + 1], ARGV[i + 3]) end
end
redis.call('PUBLISH', ARGV[1], 'look')
return 1
`,
);

/** KEYS: version. ARGV: channel, the version after the change, the hashes. */
const TELL_KEYS = defineScript(
  'tellKeysTo03',
  `
local before = redis.call('GET', KEYS[1]) or '-'
if before == ARGV[2] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[2])
redis.call('PUBLISH', ARGV[1], before .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
return 1
`,
);

/** KEYS: state. ARGV: field, value, the value that it replaces. */
const AGREE = defineScript(
  'agreeWith03',
  `
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[3] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1
`,
);

const agreedSchema = z.array(z.tuple([z.string(), z.string()]));
const purgeSchema = z.tuple([z.enum(['soft', 'hard']), z.array(z.string())]);

export interface BridgeOptions {
  readonly journal: Pick<RedisJournal, 'on' | 'append' | 'registers' | 'catchUp'>;
  /** To the state Redis. */
  readonly link: RedisLink;
  /** Whether a process of 0.3 runs. */
  readonly isOldThere: () => boolean;
  /** Unlinks the copies that 0.3 left in the cache Redis. */
  readonly clearCache: () => Promise<void>;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** The state of 0.3, and how far both agree. */
interface Both {
  readonly history: string;
  readonly sequence: number;
  readonly version: string;
  /** Times and maintenance by the names of their fields in the journal's hash, as they are written there. */
  readonly settings: Settings;
  /** The fields as 0.3 wrote them, maintenance among them. */
  readonly written: ReadonlyMap<string, string>;
  readonly agreed: Readonly<Record<Agreed, string>>;
  readonly seenAtMs: number | null;
}

type Agreed = 'purges' | 'keys' | 'settings';
const BRIDGE_FIELDS = ['bridge:purges', 'bridge:keys', 'bridge:settings', 'bridge:seen'] as const;

export class Bridge03 {
  readonly #options: BridgeOptions;
  readonly #channels: Readonly<Record<'state' | 'keys', string>>;
  readonly #stops: readonly (() => void)[];
  /** Purges and changes of keys that 0.3 is not told of yet, in order. */
  #untold: (() => Promise<unknown>)[] = [];
  /** Until the first look it may be. */
  #isOn = true;
  #notedAtMs = Number.NEGATIVE_INFINITY;
  #cancelNext = (): void => {};
  #isClosed = false;

  constructor(options: BridgeOptions) {
    const { journal, link } = options;
    this.#options = options;
    const db = String(link.db);
    this.#channels = {
      state: channelName('cache', db, 'state'),
      keys: channelName('keys', db, 'changes'),
    };
    const lookSoon = this.#lookSoon;
    this.#stops = [
      link.subscriber.listen(this.#channels.state, lookSoon),
      link.subscriber.listen(this.#channels.keys, lookSoon),
      link.onUp(lookSoon),
      journal.on('times', lookSoon),
      journal.on('maintenance', lookSoon),
      journal.on('purge', (event, { history, sequence }) => {
        if (event.from03 === undefined) this.#tell(() => this.#tellPurge(event, `${history} ${sequence}`));
      }),
      journal.on('keys', (event, { sequence }) => {
        if (event.from03 === undefined) this.#tell(() => this.#tellKeys(event, sequence));
      }),
    ];
    this.#lookLater();
  }

  /** Compares and takes over. Never rejects: what failed is done at the next look. */
  readonly look = oneAtATime(async () => {
    if (this.#isClosed || !this.#options.link.isUp()) return;
    try {
      await this.#lookNow();
    } catch {
      // The link reports why Redis does not answer.
    }
  });

  close(): void {
    this.#isClosed = true;
    this.#cancelNext();
    for (const stop of this.#stops) stop();
  }

  #lookLater(): void {
    this.#cancelNext = this.#options.timers.after(LOOK_EVERY_MS, () => {
      this.#lookSoon();
      this.#lookLater();
    });
  }

  /** Without 0.3 there is nothing to look at. */
  readonly #lookSoon = (): void => {
    if (this.#isOn || this.#options.isOldThere()) void this.look();
  };

  #tell(tell: () => Promise<unknown>): void {
    this.#untold.push(tell);
    this.#lookSoon();
  }

  async #lookNow(): Promise<void> {
    const both = await this.#read();
    this.#isOn = await this.#isStillOn(both);
    if (!this.#isOn) {
      this.#untold = [];
      return;
    }
    await this.#takePurges(both);
    await this.#takeKeys(both);
    await this.#compareSettings(both);
    for (let tell = this.#untold[0]; tell !== undefined; tell = this.#untold[0]) {
      await tell();
      this.#untold.shift();
    }
  }

  async #read(): Promise<Both> {
    const [head, times, version, bridge] = await this.#options.link.run((client) =>
      Promise.all([
        client.hmget(HEAD, 'history', 'sequence', 'maintenance'),
        client.hgetall(TIMES),
        client.get(VERSION),
        client.hmget(STATE_KEY, ...BRIDGE_FIELDS),
      ]),
    );
    const [history = '', sequence = '', maintenance = ''] = head.map((value) => value ?? '');
    const [purges = '', keys = '', settings = '', seen = ''] = bridge.map((value) => value ?? '');
    const [about, seenAtMs] = [canonical(MAINTENANCE, maintenance), seen === '' ? null : Number(seen)];
    return {
      history,
      sequence: Number(sequence),
      version: version ?? '',
      settings: new Map([...readTimes(times), ...(about === '' ? [] : [[MAINTENANCE, about] as const])]),
      written: new Map([...Object.entries(times), [MAINTENANCE, maintenance]]),
      agreed: { purges, keys, settings },
      seenAtMs,
    };
  }

  /** Notes when 0.3 was there last, and clears up after it. */
  async #isStillOn({ history, version, seenAtMs }: Both): Promise<boolean> {
    const { link, isOldThere, clearCache, clock } = this.#options;
    const nowMs = clock.nowMs();
    const hasLeft = history !== '' || (version !== '' && !version.startsWith(OURS));
    if (isOldThere() || (seenAtMs === null && hasLeft)) {
      if (Math.abs(nowMs - this.#notedAtMs) >= NOTE_SEEN_EVERY_MS) {
        await link.run((client) => client.hset(STATE_KEY, 'bridge:seen', nowMs));
        this.#notedAtMs = nowMs;
      }
      return true;
    }
    if (seenAtMs === null) return false;
    if (nowMs - seenAtMs < OVER_AFTER_MS) return true;
    await clearCache();
    await link.run(async (client) => {
      await client.unlink(...LEFT_BEHIND);
      await client.unlink(VERSION);
      return client.hdel(STATE_KEY, ...BRIDGE_FIELDS);
    });
    return false;
  }

  /** Purges of 0.3, from the first one after those that were taken over. */
  async #takePurges({ history, sequence, agreed }: Both): Promise<void> {
    const { link, journal } = this.#options;
    const [knownHistory = '', knownSequence = '0'] = agreed.purges.split(' ');
    const end = `${history} ${sequence}`;
    if (history === '' || agreed.purges === end) return;
    // Copies of 0.4 are younger than its first look.
    if (knownHistory === '') return this.#agree('purges', end, agreed.purges);
    const floor = sequence - (await link.run((client) => client.llen(PURGES)));
    const from = Number(knownSequence);
    if (knownHistory !== history || from < floor || from > sequence) {
      const event = { kind: 'purge', tags: ['all'], mode: 'hard', from03: end } as const;
      await journal.append(event, [replaced('purges', end, agreed.purges)]);
      return;
    }
    let known = agreed.purges;
    const purges = await link.run((client) => client.lrange(PURGES, from - floor, -1));
    for (const [index, purge] of purges.entries()) {
      const position = `${history} ${from + index + 1}`;
      const [mode, tags] = readPurge(purge);
      const event = { kind: 'purge', tags, mode, from03: position } as const;
      if (purge.startsWith(OURS)) await this.#agree('purges', position, known);
      else if (!(await journal.append(event, [replaced('purges', position, known)]))) return;
      known = position;
    }
  }

  /** 0.3 names the keys in its message, which may be lost; so each key is confirmed before it is used again. */
  async #takeKeys({ version, agreed }: Both): Promise<void> {
    if (version === '' || version === agreed.keys) return;
    // The first version that 0.4 sees is no change: no key was known here before.
    if (version.startsWith(OURS) || agreed.keys === '') return this.#agree('keys', version, agreed.keys);
    const event = { kind: 'keys', hashes: null, from03: version } as const;
    await this.#options.journal.append(event, [replaced('keys', version, agreed.keys)]);
  }

  async #compareSettings(both: Both): Promise<void> {
    const { journal } = this.#options;
    const { settings, agreed } = both;
    const ours: Settings = new Map([...journal.registers()].map(([name, text]) => [name, canonical(name, text)]));
    const last = new Map(agreedSchema.safeParse(parsed(agreed.settings)).data);
    let known = agreed.settings;
    const changed: string[] = [];
    for (const name of new Set([...settings.keys(), ...last.keys(), ...ours.keys()])) {
      const [old, own, agreedOn] = [settings, ours, last].map((each) => each.get(name) ?? '');
      if (old === undefined || own === undefined || (old === own && old === agreedOn)) continue;
      if (old === agreedOn) {
        changed.push(name);
        continue;
      }
      last.set(name, old);
      const next = JSON.stringify([...last].filter(([, text]) => text !== ''));
      if (old === own) await this.#agree('settings', next, known);
      else if (!(await journal.append(eventOf(name, old), [replaced('settings', next, known)]))) return;
      known = next;
    }
    if (changed.length > 0) await this.#tellSettings(changed, both);
  }

  /**
   * Writes settings of 0.4 where 0.3 has them; the next look agrees. Neither of these is overwritten:
   * 1. Another process took over a setting of 0.3, and agreed on it. This one has not heard of the event yet, so its own value
   *    is the one before. It catches up first.
   * 2. 0.3 wrote after this look had read. The script changes nothing then, and the next look takes over what 0.3 wrote.
   */
  async #tellSettings(changed: readonly string[], { settings, written }: Both): Promise<void> {
    const { journal, link } = this.#options;
    await journal.catchUp();
    const own = journal.registers();
    const args: string[] = [];
    for (const name of changed) {
      const [from, to] = [settings.get(name) ?? '', own.get(name) ?? ''];
      if (canonical(name, to) === from) continue;
      const wanted = fieldsOf(name, to);
      for (const field of new Set([...fieldsOf(name, from).keys(), ...wanted.keys()])) {
        const key = name === MAINTENANCE ? '1' : '2';
        args.push(key, field, written.get(field) ?? '', wanted.get(field) ?? '');
      }
    }
    if (args.length === 0) return;
    const call = { keys: [HEAD, TIMES], args: [this.#channels.state, OURS + randomUUID(), ...args] };
    await runScript(link, TELL_SETTINGS, call);
    void this.look();
  }

  #tellPurge({ tags, mode }: EventOf<'purge'>, position: string): Promise<unknown> {
    const purge = `${OURS}${position.replace(' ', '.')} ${JSON.stringify([mode, tags])}`;
    const args = [this.#channels.state, position, purge, randomUUID()];
    return runScript(this.#options.link, TELL_PURGE, { keys: [HEAD, PURGES], args });
  }

  #tellKeys({ hashes }: EventOf<'keys'>, sequence: number): Promise<unknown> {
    const args = [this.#channels.keys, `${OURS}${sequence}`, hashes === null ? '*' : hashes.join(',')];
    return runScript(this.#options.link, TELL_KEYS, { keys: [VERSION], args });
  }

  async #agree(name: Agreed, value: string, known: string): Promise<void> {
    const args = [`bridge:${name}`, value, known];
    await runScript(this.#options.link, AGREE, { keys: [STATE_KEY], args });
  }
}

function replaced(name: Agreed, value: string, known: string) {
  return { field: `bridge:${name}`, value, replaced: known };
}

/** A purge of 0.3: its id, and JSON of its mode and tags. One that can't be read may purge anything. */
function readPurge(purge: string): readonly [mode: 'soft' | 'hard', tags: readonly string[]] {
  const [mode, tags] = purgeSchema.safeParse(parsed(purge.slice(purge.indexOf(' ') + 1))).data ?? ['hard', ['all']];
  return [mode, tags];
}
