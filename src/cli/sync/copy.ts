/**
 * The copy on disk: the calls, their parts, notes, and where to go on. Everything is written in an order that a kill at any
 * moment leaves whole: a part before the note that it is there, and a change before the place in the feed that follows it.
 *
 * Notes say for which version of its call each part was read; a part without a note is owed. A call is owed if it has one.
 * Owed calls and parts could not be read as they are now, and are asked for again.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { CliError, parseJson } from '../command.ts';
import { type Line, LineFile, replaceFile } from './line-file.ts';
import { type Part, PARTS } from './options.ts';

const stateSchema = z.strictObject({
  version: z.literal(1),
  url: z.string(),
  /** The place in the feed of changes; null if there is none, or all calls have to be read first. */
  cursor: z.string().nullable(),
  /** The place that was taken before the walk that is under way; null if none is, or there is no feed. */
  from: z.string().nullable().default(null),
});
type State = z.output<typeof stateSchema>;

/** Kept with a part: for which version of the call it was read, or that it was not ready then. */
interface PartNote extends Line {
  readonly of: string;
  readonly isAbsent?: true;
}

/** A call or part that is to be asked for again. */
export interface Owed {
  readonly id: string;
  readonly kind: Part | 'call';
}

const KINDS = [...PARTS, 'call'] as const;

interface Debt extends Owed {
  /** How often it was asked for in vain since the copy was opened. */
  readonly tries: number;
  /** When it was last. */
  readonly askedAtMs: number;
}

/** The pause after a question in vain: twice as long each time. */
const FIRST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 3_600_000;

export class LocalCopy {
  readonly calls: LineFile;
  /** Those that are wanted now. */
  readonly parts: readonly Part[];
  /** Also of parts that were wanted before: what is deleted is deleted there, too. */
  readonly #parts: ReadonlyMap<Part, LineFile>;
  /** By `part:id`, and `call:id`. */
  readonly #notes: LineFile;
  /** By the same names. */
  readonly #owed: Map<string, Debt>;
  readonly #nowMs: () => number;
  readonly #statePath: string;
  #state: State;

  private constructor(
    folder: string,
    files: { calls: LineFile; notes: LineFile; parts: ReadonlyMap<Part, LineFile> },
    wanted: readonly Part[],
    { state, nowMs }: { readonly state: State; readonly nowMs: () => number },
  ) {
    this.calls = files.calls;
    this.parts = wanted;
    this.#parts = files.parts;
    this.#notes = files.notes;
    this.#statePath = statePathOf(folder);
    this.#state = state;
    this.#nowMs = nowMs;
    const ids = new Set([...this.calls.ids, ...this.#notes.ids.map((note) => note.slice(note.indexOf(':') + 1))]);
    const all = [...ids].flatMap((id) => KINDS.map((kind): Owed => ({ id, kind })));
    const owed = all.filter((one) => this.#isOwed(one));
    this.#owed = new Map(owed.map((one) => [nameOf(one), { ...one, tries: 0, askedAtMs: 0 }]));
  }

  /**
   * `nowMs`: of a clock that never goes back. Rejects with a CliError if the folder holds something else, or a copy of another API.
   */
  static async open(
    folder: string,
    url: string,
    parts: readonly Part[],
    nowMs = (): number => performance.now(),
  ): Promise<LocalCopy> {
    const state = readState(folder, url);
    const calls = await LineFile.open(join(folder, 'calls.jsonl'));
    const notes = await LineFile.open(join(folder, 'parts.jsonl'));
    const opened = new Map<Part, LineFile>();
    for (const part of PARTS) {
      const path = join(folder, `${part}s.jsonl`);
      if (parts.includes(part) || existsSync(path)) opened.set(part, await LineFile.open(path));
    }
    return new LocalCopy(folder, { calls, notes, parts: opened }, parts, { state, nowMs });
  }

  get cursor(): string | null {
    return this.#state.cursor;
  }

  set cursor(cursor: string | null) {
    this.#change({ cursor, from: null });
  }

  get from(): string | null {
    return this.#state.from;
  }

  /** Begins a walk at a new place in the feed. Parts that were read before it may have changed unseen: they are owed. */
  beginAt(from: string): void {
    for (const note of this.#notes.ids) if (!note.startsWith('call:')) this.#notes.delete(note);
    this.#change({ cursor: null, from });
  }

  #change(change: Pick<State, 'cursor' | 'from'>): void {
    if (change.cursor === this.#state.cursor && change.from === this.#state.from) return;
    this.#state = { ...this.#state, ...change };
    replaceFile(this.#statePath, `${JSON.stringify(this.#state)}\n`);
  }

  get owed(): readonly Owed[] {
    return [...this.#owed.values()];
  }

  /** The part of what is owed that is to be asked for now. A record that stays damaged costs less and less of the key's limits. */
  get due(): readonly Owed[] {
    const nowMs = this.#nowMs();
    return [...this.#owed.values()].filter(
      ({ tries, askedAtMs }) =>
        tries === 0 || nowMs - askedAtMs >= Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1)),
    );
  }

  /** To be called when it was asked for in vain. A part that is not wanted now is owed as soon as it is. */
  owe(owed: Owed): void {
    if (owed.kind === 'call') this.#notes.put({ id: nameOf(owed) });
    else this.#notes.delete(nameOf(owed));
    if (!this.#isOwed(owed)) return;
    const { tries = 0 } = this.#owed.get(nameOf(owed)) ?? {};
    this.#owed.set(nameOf(owed), { ...owed, tries: tries + 1, askedAtMs: this.#nowMs() });
  }

  #isOwed({ id, kind }: Owed): boolean {
    const isNoted = this.#notes.has(nameOf({ id, kind }));
    return kind === 'call' ? isNoted : !isNoted && this.parts.includes(kind) && this.calls.has(id);
  }

  /** `isOld`: it is from before a change, and owed. */
  putCall(call: Line, isOld: boolean): boolean {
    const isChanged = this.calls.put(call);
    const owed = { id: call.id, kind: 'call' } as const;
    if (isOld) this.owe(owed);
    else {
      this.#notes.delete(nameOf(owed));
      this.#owed.delete(nameOf(owed));
    }
    return isChanged;
  }

  /** Whether the part was never looked for since the call became what it is now. */
  lacks(part: Part, id: string): boolean {
    const version = this.calls.digest(id);
    const noted = this.#notes.digest(nameOf({ id, kind: part }));
    return (
      version !== null &&
      noted !== LineFile.digestOf(noteOf(part, id, version, false)) &&
      noted !== LineFile.digestOf(noteOf(part, id, version, true))
    );
  }

  /** `body`: null if the part is not there, or not yet. `isOld`: it is from before a change, and owed. */
  putPart(part: Part, id: string, body: object | null, isOld: boolean): void {
    const file = this.#parts.get(part);
    const version = this.calls.digest(id);
    if (file === undefined || version === null) return;
    if (body === null) file.delete(id);
    else file.put({ id, ...body });
    if (isOld) this.owe({ id, kind: part });
    else {
      this.#notes.put(noteOf(part, id, version, body === null));
      this.#owed.delete(nameOf({ id, kind: part }));
    }
  }

  /** Whether the part was not ready when it was last looked for. */
  isAwaited(part: Part, id: string): boolean {
    const version = this.calls.digest(id);
    return (
      version !== null &&
      this.#notes.digest(nameOf({ id, kind: part })) === LineFile.digestOf(noteOf(part, id, version, true))
    );
  }

  delete(id: string): boolean {
    for (const file of this.#parts.values()) file.delete(id);
    for (const kind of KINDS) {
      this.#notes.delete(nameOf({ id, kind }));
      this.#owed.delete(nameOf({ id, kind }));
    }
    return this.calls.delete(id);
  }

  close(): void {
    for (const file of [this.calls, this.#notes, ...this.#parts.values()]) file.close();
  }
}

/** Names what is noted or owed. */
function nameOf({ id, kind }: Owed): string {
  return `${kind}:${id}`;
}

function noteOf(part: Part, id: string, of: string, isAbsent: boolean): PartNote {
  return { id: nameOf({ id, kind: part }), of, ...(isAbsent && { isAbsent }) };
}

function statePathOf(folder: string): string {
  return join(folder, 'state.json');
}

function readState(folder: string, url: string): State {
  const path = statePathOf(folder);
  if (!existsSync(path)) {
    const state = { version: 1 as const, url, cursor: null, from: null };
    replaceFile(path, `${JSON.stringify(state)}\n`);
    return state;
  }
  const parsed = stateSchema.safeParse(parseJson(readFileSync(path, 'utf8')));
  if (!parsed.success)
    throw new CliError(`${path} is none of a copy. Give an empty folder, or one that sync has made.`);
  if (parsed.data.url !== url) {
    throw new CliError(`${folder} is a copy of ${parsed.data.url}, and --url is ${url}. Give another folder.`);
  }
  return parsed.data;
}
