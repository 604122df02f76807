/**
 * Brings a copy up to date and keeps it so: by the feed of changes if the gateway has one, else by reading all calls again.
 *
 * With a feed, the place in it is taken *before* all calls are read for the first time: changes during that walk are read again
 * after it, so none is missed. A feed that cannot go on (400 `cursor_expired`) costs one walk.
 */
import { z } from 'zod';
import { CliError } from '../command.ts';
import type { ConsumerApi, Found, Reply } from './consumer-api.ts';
import type { LocalCopy } from './copy.ts';
import type { Part } from './options.ts';

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

/** The work done and the work left, for people. */
export interface Progress {
  readonly phase: 'calls' | 'parts' | 'changes';
  readonly done: number;
  readonly total: number;
  /** Requests that are still to be made, as far as it is known. */
  readonly requestsLeft: number;
}

export interface SyncOptions {
  readonly api: ConsumerApi;
  readonly copy: LocalCopy;
  readonly onProgress: (progress: Progress) => void;
}

export interface Counts {
  written: number;
  deleted: number;
  parts: number;
  unreadable: number;
}

export class Sync {
  readonly counts: Counts = { written: 0, deleted: 0, parts: 0, unreadable: 0 };
  /** Whether the store changes records without a word, so that the feed is not all. */
  isUnannounced = false;
  readonly #api: ConsumerApi;
  readonly #copy: LocalCopy;
  readonly #onProgress: (progress: Progress) => void;

  constructor({ api, copy, onProgress }: SyncOptions) {
    this.#api = api;
    this.#copy = copy;
    this.#onProgress = onProgress;
  }

  /** Brings the copy up to date once. Resolves with whether there is a feed, which costs little to ask again. */
  async run(): Promise<boolean> {
    if (this.#copy.cursor !== null && (await this.#follow())) return true;
    this.#copy.cursor = null;
    const start = await this.#readFeed(null);
    await this.walk();
    if (start === null) return false;
    this.#copy.cursor = start.cursor;
    return this.#follow();
  }

  /** Reads all calls, and the parts of those that are new or have changed. A call that is not seen is asked for by itself. */
  async walk(): Promise<void> {
    const seen = new Set<string>();
    let path: string | null = `/v2/calls?after=&pageSize=${PAGE_SIZE}`;
    while (path !== null) {
      const page: Found = expectFound(await this.#api.get(path), path);
      const { calls, pagination } = callsSchema.parse(page.body);
      for (const call of calls) {
        seen.add(call.id);
        if (this.#copy.calls.put(call)) this.counts.written += 1;
      }
      path = page.next;
      const left = Math.max(0, pagination.total_count - seen.size);
      const requestsLeft = Math.ceil(left / PAGE_SIZE) + pagination.total_count * this.#copy.parts.length;
      this.#onProgress({ phase: 'calls', done: seen.size, total: seen.size + left, requestsLeft });
    }
    const unseen = this.#copy.calls.ids.filter((id) => !seen.has(id));
    await each(unseen, (id) => this.#readCall(id));
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

  /** Applies the feed from the copy's place to its end. False if it cannot go on from there. */
  async #follow(): Promise<boolean> {
    for (;;) {
      const read = await this.#readFeed(this.#copy.cursor);
      if (read === null) return false;
      const kinds = Map.groupBy(read.changes, ({ kind }) => (kind === 'call' ? 'call' : 'part'));
      const calls = new Set((kinds.get('call') ?? []).map(({ id }) => id));
      const wanted = new Map<string, { id: string; part: Part }>();
      const want = (id: string, part: Part): unknown => wanted.set(`${part}:${id}`, { id, part });
      await each([...calls], async (id) => {
        const isNew = !this.#copy.calls.has(id);
        await this.#readCall(id);
        if (isNew && this.#copy.calls.has(id)) for (const part of this.#copy.parts) want(id, part);
      });
      for (const { id, kind } of kinds.get('part') ?? []) {
        for (const part of this.#copy.parts) if (part === kind && this.#copy.calls.has(id)) want(id, part);
      }
      await this.#readParts([...wanted.values()], 'changes');
      this.#copy.cursor = read.cursor;
      if (!read.has_more) return true;
    }
  }

  /** Null if there is no feed, or it cannot go on from that place. */
  async #readFeed(cursor: string | null): Promise<z.output<typeof changesSchema> | null> {
    const query = cursor === null ? '' : `?limit=${EVENTS_PER_READ}&after=${encodeURIComponent(cursor)}`;
    const reply = await this.#api.get(`/v2/changes${query}`);
    if (reply.kind === 'refused' || reply.kind === 'absent') return null;
    const read = changesSchema.parse(expectFound(reply, '/v2/changes').body);
    this.isUnannounced = read.unannounced;
    return read;
  }

  async #readCall(id: string): Promise<void> {
    const reply = await this.#api.get(`/v2/calls/${id}`);
    if (reply.kind === 'unreadable') this.counts.unreadable += 1;
    else if (reply.kind === 'absent') this.counts.deleted += Number(this.#copy.delete(id));
    else if (this.#copy.calls.put(callBodySchema.parse(expectFound(reply, id).body).call)) this.counts.written += 1;
  }

  async #readParts(
    wanted: readonly { readonly id: string; readonly part: Part }[],
    phase: Progress['phase'],
  ): Promise<void> {
    let done = 0;
    await each(wanted, async ({ id, part }) => {
      await (part === 'transcript' ? this.#readTranscript(id) : this.#readScorecard(id));
      done += 1;
      this.#onProgress({ phase, done, total: wanted.length, requestsLeft: wanted.length - done });
    });
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
    for (let page = 1; ; page += 1) {
      const reply = await this.#api.get(`${address}&page=${page}`);
      if (reply.kind !== 'found') return this.#putPart('transcript', id, reply, () => ({}));
      const { transcript, pagination } = transcriptSchema.parse(reply.body);
      if (total !== null && total !== pagination.total_count) {
        // The transcript was renewed meanwhile.
        segments.clear();
        total = null;
        page = 0;
        continue;
      }
      total = pagination.total_count;
      // A turn that was cut goes on with the same index.
      for (const { index, text } of transcript.segments) segments.set(index, (segments.get(index) ?? '') + text);
      if (pagination.has_more) continue;
      const { is_format_supported } = transcript;
      const turns = [...segments].map(([index, text]) => ({ index, text }));
      const text = turns.map((turn) => turn.text).join('\n');
      return this.#putPart('transcript', id, reply, () => ({
        transcript: { text, is_format_supported, segments: turns },
      }));
    }
  }

  /** A part that cannot be read stays as it is, and is asked for again. */
  #putPart(part: Part, id: string, reply: Reply, toBody: (body: unknown) => object): void {
    if (reply.kind === 'found') {
      this.#copy.putPart(part, id, toBody(reply.body));
      this.counts.parts += 1;
    } else if (reply.kind === 'absent') this.#copy.putPart(part, id, null);
    else this.counts.unreadable += 1;
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
