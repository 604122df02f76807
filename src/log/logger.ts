/**
 * The log: JSON lines for machines, or lines for a person at the terminal.
 *
 * Lines are written synchronously. A buffered destination would have to be flushed on every way out of the process,
 * and what is lost otherwise are the last lines before a crash, the ones that matter; a write to a pipe or a file
 * costs a few microseconds.
 */
import {
  type Bindings,
  type ChildLoggerOptions,
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

/** What every line says of where it is from. */
export function logOrigin(): { readonly service: string; readonly pid: number } {
  return { service: 'evalgate', pid: process.pid };
}

/** Makes the process's logger. Children of it (`logger.child`) keep all of its guards. */
export function createLogger({ level, format = null, destination }: LogOptions): Logger {
  const lines = destination ?? fileDestination({ dest: STDERR, sync: true });
  const logger = pino(
    {
      level,
      base: logOrigin(),
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: scrubMembers },
      serializers: { err: logError, error: logError },
      hooks: { logMethod: nameErrors, streamWrite: scrubTokens },
    },
    format === null ? lines : formattedLines(lines, format),
  );
  guardChildren(logger);
  return logger;
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

/** Pino's formatters don't see what a child is bound to; children inherit this method, and so their children. */
function guardChildren(logger: Logger): void {
  const makeChild: unknown = Reflect.get(logger, 'child');
  if (typeof makeChild !== 'function') throw new TypeError('the logger cannot make children');
  Object.defineProperty(logger, 'child', {
    value(this: Logger, bindings: Bindings, options?: ChildLoggerOptions): unknown {
      return Reflect.apply(makeChild, this, [scrubMembers(bindings), options]);
    },
  });
}

function formattedLines(lines: DestinationStream, format: LineFormat): DestinationStream {
  return {
    write: (text) => {
      for (const line of text.split('\n')) if (line !== '') lines.write(format(line));
    },
  };
}
