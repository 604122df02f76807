/**
 * The fleet's purge log. Redis has it; each process holds a table of it in memory, so that a read asks nobody. The table
 * is kept true by messages, and by looking at Redis a few times a second for what the messages may have left out.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { afterChange, type RedisCommands } from '../redis/connection.ts';
import { type PurgeLog, type PurgeMode, type PurgePosition, PurgeTable } from './purge-log.ts';
import { tagSchema } from './redis/entry-format.ts';
import { appendPurge, type KnownPurges, type StateReply } from './redis-state-scripts.ts';
import type { Tag } from './tags.ts';

export interface RedisPurgeLogOptions {
  /** To the state Redis. */
  readonly redis: RedisCommands;
  /** Brings this log to where Redis is by then. */
  readonly look: () => Promise<void>;
}

const ID_BYTES = 9;
const NOTICE = /^(\S+) ([0-9]{1,15}) (.+)$/s;

const purgeSchema = z.tuple([z.enum(['soft', 'hard']), z.array(tagSchema)]);
/** What can't be read may purge anything: another release may know tags that this one doesn't. */
const ANY_PURGE = { mode: 'hard', tags: ['all'] } as const;

export class RedisPurgeLog implements PurgeLog {
  readonly #options: RedisPurgeLogOptions;
  /** Until Redis was reached this process has a history of its own, in which nobody else believes. */
  #table = new PurgeTable(`alone-${randomUUID()}`);
  #lastId = '';
  #isKnown = false;

  constructor(options: RedisPurgeLogOptions) {
    this.#options = options;
  }

  /** Whether the fleet's log was ever read. Before, what the fleet holds can't be judged, nor add anything to it. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  get known(): KnownPurges {
    return { ...this.#table.position, lastId: this.#lastId };
  }

  position(): PurgePosition {
    return this.#table.position;
  }

  since(position: PurgePosition, tags: readonly Tag[]): PurgeMode | null {
    return this.#table.since(position, tags);
  }

  /** Rejects where Redis can't be asked; it may have been purged then or not. */
  async purge(tags: readonly Tag[], mode: PurgeMode): Promise<void> {
    const text = writePurge(tags, mode);
    const next = { history: randomUUID(), purge: text };
    const { history, sequence } = await appendPurge(this.#options.redis, this.known, next);
    if (!this.#advance(history, sequence, text)) await afterChange(this.#options.look);
  }

  /** A message of another process's purge: history, sequence and the purge. False where something is missing before it. */
  hear(notice: string): boolean {
    const [, history, sequence, text] = NOTICE.exec(notice) ?? [];
    if (history === undefined || sequence === undefined || text === undefined) return false;
    return this.#advance(history, Number(sequence), text);
  }

  /** What Redis says. In another history, and where too much was missed, whatever was filled before counts as purged. */
  adopt({ history, sequence, floor, purges }: StateReply): void {
    if (history !== this.#table.history || floor > this.#table.position.sequence) {
      this.#table = new PurgeTable(history, floor);
      this.#lastId = '';
    }
    this.#isKnown = true;
    const before = sequence - purges.length;
    for (const [i, text] of purges.entries()) this.#advance(history, before + i + 1, text);
  }

  /** Whether the table holds the purge now. */
  #advance(history: string, sequence: number, text: string): boolean {
    const position = this.#table.position;
    if (history !== position.history || sequence > position.sequence + 1) return false;
    if (sequence <= position.sequence) return true;
    const { mode, tags } = readPurge(text);
    this.#table.apply(tags, mode, sequence);
    this.#lastId = idOf(text);
    return true;
  }
}

/** The id tells two purges apart that come to have the same place after Redis has lost one. */
function writePurge(tags: readonly Tag[], mode: PurgeMode): string {
  return `${randomBytes(ID_BYTES).toString('base64url')} ${JSON.stringify([mode, tags])}`;
}

function idOf(text: string): string {
  return text.slice(0, text.indexOf(' ') + 1);
}

function readPurge(text: string): { readonly mode: PurgeMode; readonly tags: readonly Tag[] } {
  try {
    const [mode, tags] = purgeSchema.parse(JSON.parse(text.slice(text.indexOf(' ') + 1)));
    return { mode, tags };
  } catch {
    return ANY_PURGE;
  }
}
