/**
 * The copy on disk: the calls, their parts, for which version of its call each part was read, and where to go on. Everything is
 * written in an order that a kill at any moment leaves whole: a part before the note that it is there, and a change before
 * the place in the feed that follows it.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
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
});

/** Kept with a part: for which version of the call it was read, or that it was not ready then. */
interface PartNote extends Line {
  readonly of: string;
  readonly isAbsent?: true;
}

export class LocalCopy {
  readonly calls: LineFile;
  readonly #parts: ReadonlyMap<Part, LineFile>;
  /** By `part:id`. */
  readonly #notes: LineFile;
  readonly #statePath: string;
  #state: z.output<typeof stateSchema>;

  private constructor(
    folder: string,
    files: { calls: LineFile; notes: LineFile; parts: ReadonlyMap<Part, LineFile> },
    state: z.output<typeof stateSchema>,
  ) {
    this.calls = files.calls;
    this.#parts = files.parts;
    this.#notes = files.notes;
    this.#statePath = statePathOf(folder);
    this.#state = state;
  }

  /** Rejects with a CliError if the folder holds something else, or a copy of another API. */
  static async open(folder: string, url: string, parts: readonly Part[]): Promise<LocalCopy> {
    mkdirSync(folder, { recursive: true });
    const state = readState(folder, url);
    const calls = await LineFile.open(join(folder, 'calls.jsonl'));
    const notes = await LineFile.open(join(folder, 'parts.jsonl'));
    const opened = new Map<Part, LineFile>();
    for (const part of parts) opened.set(part, await LineFile.open(join(folder, `${part}s.jsonl`)));
    return new LocalCopy(folder, { calls, notes, parts: opened }, state);
  }

  get parts(): readonly Part[] {
    return [...this.#parts.keys()];
  }

  get cursor(): string | null {
    return this.#state.cursor;
  }

  set cursor(cursor: string | null) {
    if (cursor === this.#state.cursor) return;
    this.#state = { ...this.#state, cursor };
    replaceFile(this.#statePath, `${JSON.stringify(this.#state)}\n`);
  }

  /** Whether the part was never looked for since the call became what it is now. */
  lacks(part: Part, id: string): boolean {
    const version = this.calls.digest(id);
    const noted = this.#notes.digest(`${part}:${id}`);
    return (
      version !== null &&
      noted !== LineFile.digestOf(noteOf(part, id, version, false)) &&
      noted !== LineFile.digestOf(noteOf(part, id, version, true))
    );
  }

  /** `body`: null if the part is not there, or not yet. */
  putPart(part: Part, id: string, body: object | null): void {
    const file = this.#parts.get(part);
    const version = this.calls.digest(id);
    if (file === undefined || version === null) return;
    if (body === null) file.delete(id);
    else file.put({ id, ...body });
    this.#notes.put(noteOf(part, id, version, body === null));
  }

  /** Whether the part was not ready when it was last looked for. */
  isAwaited(part: Part, id: string): boolean {
    const version = this.calls.digest(id);
    return (
      version !== null && this.#notes.digest(`${part}:${id}`) === LineFile.digestOf(noteOf(part, id, version, true))
    );
  }

  delete(id: string): boolean {
    for (const file of this.#parts.values()) file.delete(id);
    for (const part of PARTS) this.#notes.delete(`${part}:${id}`);
    return this.calls.delete(id);
  }

  close(): void {
    for (const file of [this.calls, this.#notes, ...this.#parts.values()]) file.close();
  }
}

function noteOf(part: Part, id: string, of: string, isAbsent: boolean): PartNote {
  return { id: `${part}:${id}`, of, ...(isAbsent && { isAbsent }) };
}

function statePathOf(folder: string): string {
  return join(folder, 'state.json');
}

function readState(folder: string, url: string): z.output<typeof stateSchema> {
  const path = statePathOf(folder);
  if (!existsSync(path)) {
    const state = { version: 1 as const, url, cursor: null };
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
