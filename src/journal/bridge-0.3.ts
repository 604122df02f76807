/**
 * evalgate 0.3 and 0.4 side by side over one Redis, during a rollout and back: purges, times, maintenance and changes of keys by
 * one are in force at the other, within a second. 0.5 deletes this file.
 *
 * 0.3 keeps purges in a list, times in a hash and maintenance in a field (`evalgate:{cache}:...`), names the state of its key
 * registry by a random version, and announces all changes on two channels. Key records and quotas are the same ones. Each
 * process of 0.4 compares those with the journal: at each event, at each message of 0.3, and twice a second.
 *
 * - Times and maintenance have three values: 0.3's, the journal's, and the one that both had last (`bridge:...` in the hash of
 *   the journal). The one that differs from that was changed, and is taken over; if both were, 0.3's is.
 * - A purge or a change of keys by 0.3 becomes an event, once: the script that appends it moves on how far 0.3's were taken
 *   over. An event of 0.4 becomes a purge or a version of 0.3, once, with a name that begins with `0.4-`.
 * - It is over a day after the last process of 0.3 was seen: what 0.3 left in the state Redis is unlinked. To go back after that, set times and
 *   maintenance anew.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import type { RedisLink } from '../redis/connection.ts';
import { oneAtATime } from '../redis/connectivity.ts';
import { channelName, registryKey, taggedKey } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import { parsed } from './events.ts';
import type { EventOf, TimeOverride } from './journal.ts';
import type { RedisJournal } from './redis-journal.ts';
import { STATE_KEY } from './scripts.ts';

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
const TIMES_PREFIX = 'times:';

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

/** KEYS: head, times. ARGV: channel, a version, the maintenance (empty for none), then fields and values; none drops one. */
const TELL_SETTINGS = defineScript(
  'tellSettingsTo03',
  `
redis.call('HDEL', KEYS[1], 'maintenance')
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'maintenance', ARGV[3]) end
redis.call('HSET', KEYS[1], 'times', ARGV[2])
for i = 4, #ARGV, 2 do
  redis.call('HDEL', KEYS[2], ARGV[i])
  if ARGV[i + 1] ~= '' then redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
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

const purgeSchema = z.tuple([z.enum(['soft', 'hard']), z.array(z.string())]);

export interface BridgeOptions {
  readonly journal: RedisJournal;
  /** To the state Redis. */
  readonly link: RedisLink;
  /** Whether a process of 0.3 runs. */
  readonly isOldThere: () => boolean;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** What 0.3 has, and how far both agree. */
interface Both {
  readonly history: string;
  readonly sequence: number;
  readonly version: string;
  /** Times and maintenance by the names of their fields in the journal's hash, as they are written there. */
  readonly settings: Settings;
  readonly agreed: Readonly<Record<Agreed, string>>;
  readonly seenAtMs: number | null;
}

type Settings = ReadonlyMap<string, string>;
type Agreed = 'purges' | 'keys' | 'settings';
const BRIDGE_FIELDS = ['bridge:purges', 'bridge:keys', 'bridge:settings', 'bridge:seen'] as const;

export class Bridge03 {
  readonly #options: BridgeOptions;
  readonly #channels: Readonly<Record<'state' | 'keys', string>>;
  readonly #endings: readonly (() => void)[];
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
    this.#endings = [
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
    for (const end of this.#endings) end();
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
      agreed: { purges, keys, settings },
      seenAtMs,
    };
  }

  /** Notes when 0.3 was there last, and clears up after it. */
  async #isStillOn({ history, version, seenAtMs }: Both): Promise<boolean> {
    const { link, isOldThere, clock } = this.#options;
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

  async #compareSettings({ settings, agreed }: Both): Promise<void> {
    const { journal } = this.#options;
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
    if (changed.length > 0) await this.#tellSettings(changed, settings);
  }

  /** The next look agrees. */
  async #tellSettings(changed: readonly string[], settings: Settings): Promise<void> {
    const { journal, link } = this.#options;
    const own = journal.registers();
    const fields = new Map<string, string>();
    for (const name of changed) {
      for (const field of writeTimes(name, settings.get(name) ?? '').keys()) fields.set(field, '');
      for (const [field, value] of writeTimes(name, own.get(name) ?? '')) fields.set(field, value);
    }
    const args = [this.#channels.state, OURS + randomUUID(), own.get(MAINTENANCE) ?? '', ...[...fields].flat()];
    await runScript(link, TELL_SETTINGS, { keys: [HEAD, TIMES], args });
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

const MAINTENANCE = 'maintenance';
const overrideSchema = z.object({ name: z.string(), ms: z.number(), untilMs: z.number().nullable() });
const overridesSchema = z.array(overrideSchema);
const maintenanceSchema = z.object({ sinceMs: z.number(), untilMs: z.number(), by: z.string() });
const agreedSchema = z.array(z.tuple([z.string(), z.string()]));

function orderOf({ name, untilMs }: TimeOverride): string {
  return `${name} ${untilMs === null ? 0 : 1}`;
}

function readOverrides(text: string): readonly TimeOverride[] {
  const overrides = overridesSchema.safeParse(parsed(text)).data ?? [];
  return overrides.toSorted((one, other) => orderOf(one).localeCompare(orderOf(other)));
}

/** The same setting is the same text, whoever wrote it; empty for none. */
function canonical(name: string, text: string): string {
  if (name === MAINTENANCE) {
    const maintenance = maintenanceSchema.safeParse(parsed(text)).data;
    return maintenance === undefined ? '' : JSON.stringify(maintenance);
  }
  const overrides = readOverrides(text);
  return overrides.length === 0 ? '' : JSON.stringify(overrides);
}

function eventOf(name: string, text: string): EventOf<'times'> | EventOf<'maintenance'> {
  return name === MAINTENANCE
    ? { kind: 'maintenance', maintenance: maintenanceSchema.safeParse(parsed(text)).data ?? null }
    : { kind: 'times', class: name.slice(TIMES_PREFIX.length), overrides: readOverrides(text) };
}

/** The times of 0.3 (`list.freshMs`: milliseconds; `list.freshMs.temporary`: milliseconds and end), as the journal has them. */
function readTimes(fields: Readonly<Record<string, string>>): Settings {
  const byName = new Map<string, TimeOverride[]>();
  for (const [field, value] of Object.entries(fields)) {
    const [cacheClass = '', name = '', temporary] = field.split('.');
    const [ms = '', untilMs] = value.split(' ');
    if (!/^\d+$/.test(ms) || (temporary === undefined) !== (untilMs === undefined)) continue;
    const override = { name, ms: Number(ms), untilMs: untilMs === undefined ? null : Number(untilMs) };
    byName.set(TIMES_PREFIX + cacheClass, [...(byName.get(TIMES_PREFIX + cacheClass) ?? []), override]);
  }
  return new Map([...byName].map(([name, overrides]) => [name, canonical(name, JSON.stringify(overrides))]));
}

/** The same the other way round; nothing for maintenance. */
function writeTimes(setting: string, text: string): ReadonlyMap<string, string> {
  if (setting === MAINTENANCE) return new Map();
  const cacheClass = setting.slice(TIMES_PREFIX.length);
  return new Map(
    readOverrides(text).map(({ name, ms, untilMs }) =>
      untilMs === null
        ? [`${cacheClass}.${name}`, String(ms)]
        : [`${cacheClass}.${name}.temporary`, `${ms} ${untilMs}`],
    ),
  );
}
