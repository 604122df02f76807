/**
 * Brings a copy up to date and keeps it so: by the feed of changes if the gateway has one, else by reading all calls again.
 *
 * With a feed, the place in it is taken *before* all calls are read for the first time: changes during that walk are read again
 * after it, so none is missed, even if the walk is ended and goes on later. A feed that cannot go on (400 `cursor_expired`) costs
 * one walk, and all parts: one may have changed while its call did not.
 *
 * A call or part that the store cannot give as it is now is owed: asked for again by each walk, and while the feed is followed
 * once it is due.
 */
import { z } from 'zod';
import { CliError } from '../command.ts';
import type { ConsumerApi, Found, Reply } from './consumer-api.ts';
import type { LocalCopy } from './copy.ts';
import { LineFile } from './line-file.ts';
import { type Part, PARTS } from './options.ts';

const callSchema = z.looseObject({ id: z.string() });
const callsSchema = z.object({ calls: z.array(callSchema), pagination: z.object({ total_count: z.number() }) });
const callBodySchema = z.object({ call: callSchema });
const segmentSchema = z.looseObject({ index: z.number(), text: z.string() });
const transcriptSchema = z.object({
  transcript: z.object({ is_format_supported: z.boolean(), segments: z.array(segmentSchema) }),
  pagination: z.object({ page: z.number(), total_count: z.number(), has_more: z.boolean() }),
});
const scorecardSchema = z.looseObject({ scorecard: z.unknown(), coaching_plan: z.unknown() });
const changesSchema = z.object({
  changes: z.array(z.object({ id: z.string(), kind: z.string(), change: z.string() })),
  cursor: z.string(),
  has_more: z.boolean(),
  unannounced: z.boolean(),
});

const PAGE_SIZE = 100;
const EVENTS_PER_READ = 1000;
/** How many calls or parts are read at a time. */
const READERS = 4;
/** The first walk is followed by the feed; if its place has expired meanwhile, by one more. */
const MAX_WALKS = 2;

/** The work done and the work left, for people. */
export interface Progress {
  readonly phase: 'calls' | 'parts' | 'changes';
  readonly done: number;
  readonly total: number;
  /** Requests that are still to be made, as far as it is known. */
  readonly requestsLeft: number;
}

export interface SyncOptions {
  readonly api: Pick<ConsumerApi, 'get'>;
  readonly copy: LocalCopy;
  readonly onProgress: (progress: Progress) => void;
}

export interface Counts {
  readonly written: number;
  readonly deleted: number;
  readonly parts: number;
  /** Calls and parts that are owed. */
  readonly unreadable: number;
}

interface WantedPart {
  readonly id: string;
  readonly part: Part;
}

export class Sync {
  readonly #done = { written: 0, deleted: 0, parts: 0 };
  /** Whether the store changes records without a word, so that the feed is not all. */
  isUnannounced = false;
  readonly #api: SyncOptions['api'];
  readonly #copy: LocalCopy;
  readonly #onProgress: (progress: Progress) => void;

  constructor({ api, copy, onProgress }: SyncOptions) {
    this.#api = api;
    this.#copy = copy;
    this.#onProgress = onProgress;
  }

  get counts(): Counts {
    return { ...this.#done, unreadable: this.#copy.owed.length };
  }

  /** Brings the copy up to date once. Resolves with whether there is a feed, which costs little to ask again. */
  async run(): Promise<boolean> {
    const copy = this.#copy;
    for (let walks = 0; ; walks += 1) {
      if (copy.cursor !== null) {
        const end = await this.#follow();
        if (end === 'followed') {
          await this.#readDue();
          return true;
        }
        // A place is kept while there is no feed: its gateway may be restarting with another configuration.
        if (end === 'expired') copy.cursor = null;
        else if (walks > 0) return false;
      }
      if (walks === MAX_WALKS) return false;
      const isNew = copy.cursor === null && copy.from === null;
      const start = isNew ? await this.#readFeed(null) : 'none';
      if (typeof start === 'object') copy.beginAt(start.cursor);
      await this.walk();
      if (copy.from === null) return false;
      copy.cursor = copy.from;
    }
  }

  /**
   * Reads all calls, and the parts of those that are new or have changed, and what is owed. A call that is not seen is asked for by
   * itself. So is one that differs, if there is a place in the feed: a list may be from before a change that has been applied.
   */
  async walk(): Promise<void> {
    const owed = this.#copy.owed.filter(({ kind }) => kind === 'call').map(({ id }) => id);
    const seen = new Set<string>();
    const different: string[] = [];
    const hasPlace = this.#copy.cursor !== null;
    let path: string | null = `/v2/calls?after=&pageSize=${PAGE_SIZE}`;
    while (path !== null) {
      // The feed does not repeat what an old list lacks.
      const page: Found = expectFound(await this.#api.get(path, true), path);
      const { calls, pagination } = callsSchema.parse(page.body);
      for (const call of calls) {
        seen.add(call.id);
        // An owed call stays owed: it may be as old in a list.
        if (!hasPlace) this.#done.written += Number(this.#copy.calls.put(call));
        else if (this.#copy.calls.digest(call.id) !== LineFile.digestOf(call)) different.push(call.id);
      }
      path = page.next;
      const left = Math.max(0, pagination.total_count - seen.size);
      const requestsLeft = Math.ceil(left / PAGE_SIZE) + pagination.total_count * this.#copy.parts.length;
      this.#onProgress({ phase: 'calls', done: seen.size, total: seen.size + left, requestsLeft });
    }
    const unseen = this.#copy.calls.ids.filter((id) => !seen.has(id));
    await each([...new Set([...unseen, ...owed, ...different])], (id) => this.#readCall(id));
    const ids = this.#copy.calls.ids;
    await this.#readParts(
      ids.flatMap((id) =>
        this.#copy.parts
          .filter((part) => this.#copy.lacks(part, id) || this.#copy.isAwaited(part, id))
          .map((part) => ({ id, part })),
      ),
      'parts',
    );
  }

  async #readDue(): Promise<void> {
    const { due } = this.#copy;
    const ofNew = await this.#readCalls(due.flatMap(({ kind, id }) => (kind === 'call' ? [id] : [])));
    const parts = due.flatMap(({ kind, id }) => (kind === 'call' ? [] : [{ id, part: kind }]));
    const wanted = [...ofNew, ...parts].filter(({ id }) => this.#copy.calls.has(id));
    await this.#readParts(wanted, 'parts');
  }

  /** Applies the feed from the copy's place to its end, if it can go on from there. */
  async #follow(): Promise<'followed' | 'none' | 'expired'> {
    for (;;) {
      const read = await this.#readFeed(this.#copy.cursor);
      if (typeof read === 'string') return read;
      const kinds = Map.groupBy(read.changes, ({ kind }) => (kind === 'call' ? 'call' : 'part'));
      const calls = kinds.get('call') ?? [];
      const ids = new Set(calls.map((event) => event.id));
      const wanted = new Map<string, WantedPart>();
      const want = (id: string, part: Part): void => {
        if (this.#copy.parts.includes(part)) wanted.set(`${part}:${id}`, { id, part });
        else this.#copy.owe({ id, kind: part });
      };
      for (const { id, part } of await this.#readCalls([...ids])) want(id, part);
      // Moves may be announced in another order than they were made: if the call is there, its parts were perhaps read elsewhere.
      const deleted = calls.filter(({ change }) => change === 'deleted');
      const ofDeleted = deleted.flatMap(({ id }) => PARTS.map((kind) => ({ id, kind })));
      for (const { id, kind } of [...ofDeleted, ...(kinds.get('part') ?? [])]) {
        const part = PARTS.find((one) => one === kind);
        if (part !== undefined && this.#copy.calls.has(id)) want(id, part);
      }
      await this.#readParts([...wanted.values()], 'changes');
      this.#copy.cursor = read.cursor;
      if (!read.has_more) return 'followed';
    }
  }

  /** `none`: there is no feed. `expired`: it cannot go on from that place. */
  async #readFeed(cursor: string | null): Promise<z.output<typeof changesSchema> | 'none' | 'expired'> {
    const query = cursor === null ? '' : `?limit=${EVENTS_PER_READ}&after=${encodeURIComponent(cursor)}`;
    const reply = await this.#api.get(`/v2/changes${query}`);
    if (reply.kind === 'refused') return reply.code === 'path_unknown' ? 'none' : 'expired';
    const read = changesSchema.parse(expectFound(reply, '/v2/changes').body);
    this.isUnannounced = read.unannounced;
    return read;
  }

  /** Resolves with the parts of those that were not in the copy before: they have to be read too. */
  async #readCalls(ids: readonly string[]): Promise<readonly WantedPart[]> {
    const unknown = ids.filter((id) => !this.#copy.calls.has(id));
    await each(ids, (id) => this.#readCall(id));
    const added = unknown.filter((id) => this.#copy.calls.has(id));
    return added.flatMap((id) => this.#copy.parts.map((part) => ({ id, part })));
  }

  async #readCall(id: string): Promise<void> {
    const reply = await this.#api.get(`/v2/calls/${id}`);
    if (reply.kind === 'unreadable') this.#copy.owe({ id, kind: 'call' });
    else if (reply.kind === 'absent') this.#done.deleted += Number(this.#copy.delete(id));
    else {
      const { body, isOld } = expectFound(reply, id);
      if (this.#copy.putCall(callBodySchema.parse(body).call, isOld)) this.#done.written += 1;
    }
  }

  async #readParts(wanted: readonly WantedPart[], phase: Progress['phase']): Promise<void> {
    let done = 0;
    await each(wanted, async ({ id, part }) => {
      await this.#readPart(part, id);
      done += 1;
      this.#onProgress({ phase, done, total: wanted.length, requestsLeft: wanted.length - done });
    });
  }

  #readPart(part: Part, id: string): Promise<void> {
    return part === 'transcript' ? this.#readTranscript(id) : this.#readScorecard(id);
  }

  async #readScorecard(id: string): Promise<void> {
    const reply = await this.#api.get(`/v2/calls/${id}/scorecard`);
    this.#putPart('scorecard', id, reply, (body) => scorecardSchema.parse(body));
  }

  /** All pages as one; they are of one copy if all have the same number of turns. */
  async #readTranscript(id: string): Promise<void> {
    const address = `/v2/calls/${id}/transcript?pageSize=200`;
    const segments = new Map<number, string>();
    let total: number | null = null;
    let isOld = false;
    for (let page = 1; ; page += 1) {
      const reply = await this.#api.get(`${address}&page=${page}`);
      if (reply.kind !== 'found') return this.#putPart('transcript', id, reply, () => ({}));
      const { transcript, pagination } = transcriptSchema.parse(reply.body);
      if (total !== null && total !== pagination.total_count) {
        // The transcript was renewed meanwhile.
        segments.clear();
        total = null;
        isOld = false;
        page = 0;
        continue;
      }
      total = pagination.total_count;
      isOld ||= reply.isOld;
      // A turn that was cut goes on with the same index.
      for (const { index, text } of transcript.segments) segments.set(index, (segments.get(index) ?? '') + text);
      if (pagination.has_more) continue;
      const { is_format_supported } = transcript;
      const turns = [...segments].map(([index, text]) => ({ index, text }));
      const text = turns.map((turn) => turn.text).join('\n');
      return this.#putPart('transcript', id, { ...reply, isOld }, () => ({
        transcript: { text, is_format_supported, segments: turns },
      }));
    }
  }

  /** A part that cannot be read stays as it is. */
  #putPart(part: Part, id: string, reply: Reply, toBody: (body: unknown) => object): void {
    if (reply.kind === 'found') {
      this.#copy.putPart(part, id, toBody(reply.body), reply.isOld);
      this.#done.parts += 1;
    } else if (reply.kind === 'absent') this.#copy.putPart(part, id, null, false);
    else this.#copy.owe({ id, kind: part });
  }
}

/** A few at a time; the order does not matter. */
async function each<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const worker = async (): Promise<void> => {
    for (const item of left) await run(item);
  };
  await Promise.all(Array.from({ length: READERS }, worker));
}

function expectFound(reply: Reply, what: string): Found {
  if (reply.kind === 'found') return reply;
  const why =
    reply.kind === 'refused' ? `it answered ${reply.code}` : 'there is no such endpoint, or the record is damaged';
  throw new CliError(`${what}: ${why}. Is --url the address of an evalgate gateway of this release?`);
}
