/** What a command knows of the world around it: the environment, the three streams, and whether somebody is there. */
import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';

export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes to standard output. */
  out(text: string): void;
  /** Writes to standard error. */
  err(text: string): void;
  /** All of standard input. */
  readInput(): Promise<string>;
  /**
   * Shows what it is about and asks; anything but a yes counts as no. Null, and nothing shown, where nobody is there.
   */
  confirm(about: string, question: string): Promise<boolean | null>;
}

/** The process's own. */
export function processTerminal(): Terminal {
  return {
    env: process.env,
    out: (written) => void process.stdout.write(written),
    err: (written) => void process.stderr.write(written),
    readInput: () => text(process.stdin),
    confirm: async (about, question) => {
      if (!process.stdin.isTTY || !process.stderr.isTTY) return null;
      process.stderr.write(`${about}\n`);
      return await ask(question);
    },
  };
}

/** On standard error, so that standard output holds the answer alone. */
async function ask(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  // The end of the input leaves the question open for good; Ctrl-C rejects it.
  lines.once('close', () => resolve(''));
  try {
    const reply = await Promise.race([lines.question(`${question} [y/N] `), ended]);
    return /^y(?:es)?$/i.test(reply.trim());
  } catch {
    return false;
  } finally {
    lines.close();
  }
}
