/** How a command ends where it cannot do what it was asked. */
import { CommanderError } from 'commander';

/** 0: done. 1: it failed. 2: it was called wrongly. */
export const EXIT_CODES = { ok: 0, failed: 1, usage: 2 } as const;

/** A failure to be told as it is: what was given, what is allowed, what to do. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = EXIT_CODES.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The status to exit with after the error. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.exitCode;
  // Help and version end the same way as errors do, with the status 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.usage;
  return EXIT_CODES.failed;
}
