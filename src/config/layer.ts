/** The form that both layers of the configuration, file and environment, are read into. */
import type { ConfigFault } from './errors.ts';

/** A value somebody wrote, and how messages name its place. */
export interface GivenValue {
  readonly written: unknown;
  readonly name: string;
}

export interface Layer {
  /** By the setting's id. */
  readonly values: ReadonlyMap<string, GivenValue>;
  readonly faults: readonly ConfigFault[];
  /** Ids of settings whose value could not be read: they take part in no further check. */
  readonly unknown: ReadonlySet<string>;
}

/** Reads a text file; throws if it cannot. */
export type ReadFile = (path: string) => string;

/** Why a file could not be read, without its path. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  const known: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file',
    EACCES: 'this user may not read it',
    EISDIR: 'it is a folder',
  };
  return `it cannot be read: ${known[code] ?? code}`;
}
