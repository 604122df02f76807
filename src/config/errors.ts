/** Faults of a configuration, for the person who wrote it: all at once, each with its place and with what was meant. */
import { systemCode } from '../log/error.ts';

export interface ConfigFault {
  /** The environment variable, or the member's path and its file: `server.port (my.yaml)`. */
  readonly name: string;
  /** The value as it was given, ready to print; never a secret's. Null if nothing was given. */
  readonly given: string | null;
  /** The exact problem, if there is more to say than that the value is not allowed. */
  readonly problem: string | null;
  /** The allowed values, or the thing to do. */
  readonly allowed: string;
}

/** The configuration cannot be used. `message` lists all faults and may be shown to the operator as it is. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly ConfigFault[];

  constructor(faults: readonly ConfigFault[]) {
    const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`;
    super([`The configuration has ${count}:`, ...faults.map((fault) => `  ${formatFault(fault)}`)].join('\n'));
    this.faults = faults;
  }
}

function formatFault({ name, given, problem, allowed }: ConfigFault): string {
  const parts = [given === null ? null : `given ${given}`, problem, `allowed: ${allowed}`];
  return `${name}: ${parts.filter((part) => part !== null).join('; ')}`;
}

/** Why a file could not be read, without its path. */
export function reasonOf(error: unknown): string {
  const code = systemCode(error) ?? 'unknown error';
  const known: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file',
    EACCES: 'this user may not read it',
    EISDIR: 'it is a folder',
  };
  return `it cannot be read: ${known[code] ?? code}`;
}

const GIVEN_MAX_LENGTH = 120;

/** A written value for a message: quoted, on one line, cut if it is long; a secret is not shown. */
export function showGiven(written: unknown, secret: boolean): string {
  if (secret && written !== null) return '(a secret, not shown)';
  // A URL can carry a password even in a setting that takes none.
  const text = (JSON.stringify(written) ?? 'nothing').replace(/\/\/[^/\s"]*@/g, '//***@');
  return text.length > GIVEN_MAX_LENGTH ? `${text.slice(0, GIVEN_MAX_LENGTH)}...` : text;
}

/**
 * The candidate nearest to the word by edit distance, ignoring case, or the one that the word is with its unit
 * (`redisBytes` for `redis`); null if none is within `limit`, by default a third of the word: near enough to be meant.
 */
export function nearest(
  word: string,
  candidates: readonly string[],
  limit = Math.max(2, Math.floor(word.length / 3)),
): string | null {
  const withUnit = candidates.find(
    (candidate) => word.startsWith(candidate) && /^[A-Z]/.test(word.slice(candidate.length)),
  );
  if (withUnit !== undefined) return withUnit;
  const [best] = candidates
    .filter((candidate) => Math.abs(candidate.length - word.length) <= limit)
    .map((candidate) => ({ candidate, distance: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ distance }) => distance <= limit)
    .toSorted((a, b) => a.distance - b.distance);
  return best?.candidate ?? null;
}

/** Levenshtein distance: the least number of letters to insert, drop or replace. */
export function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[to.length] ?? 0;
}
