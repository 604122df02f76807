/**
 * The log: JSON lines for machines, or lines for a person at the terminal.
 *
 * Lines are written in batches, every 100 ms or when 8 kB are waiting, and whatever waits is flushed when the process
 * exits. Only a process that is killed loses lines: those of its last moment.
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

export interface LogOptions {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
  /** Null, the default, for JSON. */
  readonly format?: LineFormat | null;
  /** Where lines go; standard error by default, since standard output belongs to what a command answers. */
  readonly destination?: DestinationStream;
}

/** A line of JSON as one for people, with its end. */
type LineFormat = (line: string) => string;

/** How the process's own log is written: for people if one is watching, as JSON (null) everywhere else. */
export async function terminalFormat(): Promise<LineFormat | null> {
  if (!process.stderr.isTTY) return null;
  // A gateway that nobody watches needs none of it.
  const { prettyFactory } = await import('pino-pretty');
  const colorize = process.env['NO_COLOR'] === undefined;
  const format = prettyFactory({ colorize, ignore: 'service,pid', translateTime: 'SYS:HH:MM:ss.l', singleLine: true });
  return (line) => format(line) ?? '';
}

const STDERR = 2;
const FLUSH_EVERY_MS = 100;
const BATCH_BYTES = 8192;

/**
 * The last line of defence: code that logs must not hand over secrets, addresses of the store or query strings. Members
 * with these names are hidden all the same, down to the third level.
 */
// oxfmt-ignore
const SECRET_MEMBERS = [
  'authorization', 'Authorization', 'cookie', 'key', 'apiKey', 'token', 'tokens', 'secret', 'password', 'hash',
  'url', 'href', 'originalUrl', 'query', 'querystring', 'search', 'body',
];
const REDACTED = {
  paths: SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
  censor: '[hidden]',
};

export type { Logger };

/** Makes the process's logger. */
export function createLogger({ level, format = null, destination }: LogOptions): Logger {
  const lines = destination ?? standardError();
  return pino(
    {
      level,
      base: { service: 'evalgate', pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: logError, error: logError },
      redact: REDACTED,
      hooks: { logMethod: nameErrors },
    },
    format === null ? lines : { write: (line) => lines.write(format(line)) },
  );
}

/**
 * A logger for lines whose members are fixed in the code and hold nothing secret, such as the line of each request:
 * looking for secrets would cost more than writing them. Its level is `info`, whatever the parent's is.
 */
export function withoutRedaction(logger: Logger): Logger {
  return logger.child({}, { redact: [], level: 'info' });
}

function standardError(): DestinationStream {
  const lines = fileDestination({ dest: STDERR, sync: false, minLength: BATCH_BYTES });
  const flushing = setInterval(() => lines.flush(), FLUSH_EVERY_MS).unref();
  let isGone = false;
  lines.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EIO') throw error;
    // The terminal is gone, and nobody reads any more. What is left must not be tried again when the process exits.
    isGone = true;
    clearInterval(flushing);
    lines.destroy();
  });
  return {
    write: (line) => {
      if (!isGone) lines.write(line);
    },
  };
}

/** A line without words of its own takes those of its error; pino would take them as they are, addresses and all. */
function nameErrors(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const [fields, message]: readonly unknown[] = args;
  const error = message === undefined ? fieldError(fields) : null;
  if (error === null) method.apply(this, args);
  else method.call(this, fields === error ? { err: error } : fields, logError(error).message);
}

function fieldError(fields: unknown): Error | null {
  if (fields instanceof Error) return fields;
  if (typeof fields !== 'object' || fields === null || !('err' in fields)) return null;
  return fields.err instanceof Error ? fields.err : null;
}
