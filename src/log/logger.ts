/**
 * The log: JSON lines for machines, or lines for a person at the terminal.
 *
 * Lines are written as soon as those before them are, and what waits is flushed when the process exits. Only a process
 * that is killed loses lines: those of its last moment.
 */
import {
  destination as fileDestination,
  type DestinationStream,
  type LogFn,
  type Logger,
  pino,
  stdTimeFunctions,
} from 'pino';
import { logError } from './error.ts';
import { scrubMembers, scrubTokens } from './scrub.ts';

export interface LogOptions {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
  /** Makes something else of each line; JSON by default. */
  readonly format?: LineFormat | null;
  /** Where lines go; standard error by default, since standard output belongs to what a command answers. */
  readonly destination?: DestinationStream;
}

/** A line of JSON as one for people, with its end. */
export type LineFormat = (line: string) => string;

const STDERR = 2;

export type { Logger };

/** Makes the process's logger. */
export function createLogger({ level, format = null, destination }: LogOptions): Logger {
  const lines = destination ?? fileDestination({ dest: STDERR, sync: false });
  return pino(
    {
      level,
      base: { service: 'evalgate', pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: scrubMembers },
      serializers: { err: logError, error: logError },
      hooks: { logMethod: nameErrors, streamWrite: scrubTokens },
    },
    format === null ? lines : formattedLines(lines, format),
  );
}

/** A line without words of its own takes those of its error; pino would take them as they are, addresses and all. */
function nameErrors(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const [fields, message]: readonly unknown[] = args;
  const error = fieldError(fields);
  if (error === null || message !== undefined) {
    method.apply(this, args);
  } else {
    method.call(this, fields === error ? { err: error } : fields, logError(error).message);
  }
}

function fieldError(fields: unknown): Error | null {
  if (fields instanceof Error) return fields;
  if (typeof fields !== 'object' || fields === null || !('err' in fields)) return null;
  return fields.err instanceof Error ? fields.err : null;
}

function formattedLines(lines: DestinationStream, format: LineFormat): DestinationStream {
  return {
    write: (text) => {
      for (const line of text.split('\n')) if (line !== '') lines.write(format(line));
    },
  };
}
