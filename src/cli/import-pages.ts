/** Imports of any size: a file's lines go to the admin listener in pages, first as a trial and then for good. */
import { CliError } from './command.ts';
import type { JsonLine } from './json-lines.ts';

/** Below the limit of the listener, 1 MB and 5000 lines; small enough that Redis stores a page within its time for an answer. */
const PAGE_BYTES = 500_000;
const PAGE_LINES = 250;

interface Import<T> {
  /** Sends one page, all or none. A refusal names a line by its place on the page, after `word`: `keys[0]`. */
  readonly send: (written: readonly unknown[], isDryRun: boolean) => Promise<T>;
  readonly word: string;
  readonly sum: (a: T, b: T) => T;
}

/**
 * The sum of the answers to all pages. A trial of all comes first, so a line that is refused on the last page leaves the first
 * ones unchanged too. Rejects with CliError, which names lines of the file, and says what was imported before.
 */
export async function importInPages<T>(lines: readonly JsonLine[], isDryRun: boolean, how: Import<T>): Promise<T> {
  const pages = [...pagesOf(lines)];
  const run = async (isTrial: boolean): Promise<T> => {
    let sum: T | null = null;
    let done = 0;
    for (const page of pages) {
      const written = page.map((line) => line.written);
      const answer = await how.send(written, isTrial).catch((error: unknown) => {
        throw error instanceof CliError ? explained(error, page, how.word, isTrial ? 0 : done) : error;
      });
      sum = sum === null ? answer : how.sum(sum, answer);
      done += page.length;
    }
    if (sum === null) throw new CliError('Nothing was imported: the file has no records.');
    return sum;
  };
  if (isDryRun || pages.length > 1) {
    const counted = await run(true);
    if (isDryRun) return counted;
  }
  return run(false);
}

function* pagesOf(lines: readonly JsonLine[]): Generator<readonly JsonLine[]> {
  let page: JsonLine[] = [];
  let bytes = 0;
  for (const line of lines) {
    const size = Buffer.byteLength(JSON.stringify(line.written)) + 1;
    if (page.length === PAGE_LINES || (page.length > 0 && bytes + size > PAGE_BYTES)) {
      yield page;
      [page, bytes] = [[], 0];
    }
    page.push(line);
    bytes += size;
  }
  if (page.length > 0) yield page;
}

function explained(error: CliError, page: readonly JsonLine[], word: string, done: number): CliError {
  const lineOf = (_: string, index: string): string => `line ${page[Number(index)]?.number ?? '?'}`;
  const message = error.message.replaceAll(new RegExp(`${word}\\[(\\d+)\\]`, 'g'), lineOf);
  const before = `Before that, ${done} lines were imported. Import the file again: it adds nothing twice.`;
  return new CliError(done === 0 ? message : `${message}\n${before}`, error.exitCode);
}
