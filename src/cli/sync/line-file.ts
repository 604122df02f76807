/**
 * A file of JSON lines that is only appended to: of each id the last line counts, and a deletion is a line too. So whatever
 * moment the process is killed at, the file holds a copy. A last line that was cut off is removed when the file is opened.
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  fsyncSync,
  openSync,
  renameSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { z } from 'zod';
import { CliError, parseJson } from '../command.ts';

export interface Line {
  readonly id: string;
  readonly deleted?: true;
}

const lineSchema = z.looseObject({ id: z.string(), deleted: z.literal(true).optional() });

/** A file with so many more lines than twice its ids is written anew when it is opened. */
const MAX_SUPERSEDED = 1000;

interface Last {
  /** Counted from 0. */
  readonly number: number;
  /** Null for a deletion. */
  readonly digest: string | null;
}

export class LineFile {
  readonly #fd: number;
  readonly #digests: Map<string, string | null>;

  private constructor(fd: number, digests: Map<string, string | null>) {
    this.#fd = fd;
    this.#digests = digests;
  }

  /** Rejects with a CliError if the file holds something else than such lines. */
  static async open(path: string): Promise<LineFile> {
    const fd = openSync(path, 'a+');
    await cutTornLine(path);
    const last = new Map<string, Last>();
    let count = 0;
    for await (const line of linesOf(path)) {
      const parsed = lineSchema.safeParse(parseJson(line));
      if (!parsed.success) throw new CliError(`${path}: line ${count + 1} is none of a copy. Give an empty folder.`);
      const { id, deleted } = parsed.data;
      last.set(id, { number: count, digest: deleted === true ? null : digestOf(line) });
      count += 1;
    }
    const digests = new Map([...last].map(([id, { digest }]) => [id, digest]));
    if (count <= 2 * last.size + MAX_SUPERSEDED) return new LineFile(fd, digests);
    closeSync(fd);
    await keepLines(path, new Set([...last.values()].map(({ number }) => number)));
    return new LineFile(openSync(path, 'a'), digests);
  }

  /** Names a line as `digest` does. */
  static digestOf(line: Line): string {
    return digestOf(JSON.stringify(line));
  }

  /** The ids of what is not deleted. */
  get ids(): readonly string[] {
    return [...this.#digests].flatMap(([id, digest]) => (digest === null ? [] : [id]));
  }

  has(id: string): boolean {
    return this.digest(id) !== null;
  }

  /** Names the last line of the id; null if there is none, or it is deleted. */
  digest(id: string): string | null {
    return this.#digests.get(id) ?? null;
  }

  /** Appends the line, unless the last one of its id is the same. Returns whether it did. */
  put(line: Line): boolean {
    const text = JSON.stringify(line);
    const digest = line.deleted === true ? null : digestOf(text);
    if (this.#digests.get(line.id) === digest) return false;
    writeSync(this.#fd, `${text}\n`);
    this.#digests.set(line.id, digest);
    return true;
  }

  /** Writes nothing about an id that is not there. */
  delete(id: string): boolean {
    return this.has(id) && this.put({ id, deleted: true });
  }

  close(): void {
    fsyncSync(this.#fd);
    closeSync(this.#fd);
  }
}

/** So that a reader, and a crash, meet the old file or the new one. */
export function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { flush: true });
  renameSync(`${path}.new`, path);
}

/** Only a line feed ends a line: for `node:readline` U+2028 does as well, which stands in JSON as it is. */
async function* linesOf(path: string): AsyncIterable<string> {
  let begun = '';
  for await (const chunk of createReadStream(path, 'utf8')) {
    const [rest = '', ...others] = String(chunk).split('\n');
    begun += rest;
    for (const next of others) {
      yield begun;
      begun = next;
    }
  }
}

/** Removes what stands behind the last line feed. */
async function cutTornLine(path: string): Promise<void> {
  const CHUNK = 65_536;
  const file = await open(path);
  try {
    const { size } = await file.stat();
    for (let end = size; end > 0; end -= CHUNK) {
      const start = Math.max(0, end - CHUNK);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(end - start), 0, end - start, start);
      const at = buffer.subarray(0, bytesRead).lastIndexOf(0x0a);
      if (at === -1 && start > 0) continue;
      if (start + at + 1 < size) truncateSync(path, start + at + 1);
      return;
    }
  } finally {
    await file.close();
  }
}

/** Writes the file anew with the lines of these numbers only. */
async function keepLines(path: string, numbers: ReadonlySet<number>): Promise<void> {
  const fd = openSync(`${path}.new`, 'w');
  let number = 0;
  for await (const line of linesOf(path)) {
    if (numbers.has(number)) writeSync(fd, `${line}\n`);
    number += 1;
  }
  fsyncSync(fd);
  closeSync(fd);
  renameSync(`${path}.new`, path);
}

function digestOf(line: string): string {
  return createHash('sha256').update(line).digest('base64url').slice(0, 22);
}
