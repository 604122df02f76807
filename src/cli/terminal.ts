/** What a command knows of the world around it: the environment and the three streams. */
import { text } from 'node:stream/consumers';

export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes to standard output. */
  out(text: string): void;
  /** Writes to standard error. */
  err(text: string): void;
  /** All of standard input. */
  readInput(): Promise<string>;
}

/** The process's own. */
export function processTerminal(): Terminal {
  return {
    env: process.env,
    out: (written) => void process.stdout.write(written),
    err: (written) => void process.stderr.write(written),
    readInput: () => text(process.stdin),
  };
}
