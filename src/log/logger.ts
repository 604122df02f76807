/** The log: JSON lines for machines, or lines for a person at the terminal. */
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { type DestinationStream, type LogFn, type Logger, pino } from 'pino';
import { logError } from './error.ts';
import { StandardError } from './standard-error.ts';

export interface LogOptions {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
  /** Null, the default, for JSON. */
  readonly format?: LineFormat | null;
  /** Standard error by default. */
  readonly destination?: DestinationStream;
}

/** A line of JSON as one for people, with its end. */
type LineFormat = (line: string) => string;

/** The log of a process. */
export interface ProcessLog {
  readonly logger: Logger;
  /** How many lines were dropped, because nobody took them. */
  readonly droppedLines: () => number;
  /** Passes on what another process writes to its log, until that ends. */
  readonly relay: (log: Readable) => void;
  /** Resolves when all lines are written, or after two seconds. To be called before the process exits. */
  readonly flush: () => Promise<void>;
}

const RELAYED_WITHIN_MS = 1000;

/**
 * Opens the log on standard error, since standard output belongs to what a command answers: for people if one is watching,
 * as JSON everywhere else.
 */
export async function openProcessLog(level: LogOptions['level']): Promise<ProcessLog> {
  const lines = new StandardError();
  const format = await terminalFormat();
  const logger = createLogger({ level, format, destination: lines });
  lines.onTaken((dropped) => logger.warn({ dropped }, 'lines of the log were dropped: nobody took them'));
  const write = (text: string): void => {
    if (format === null) lines.write(text);
    else for (const line of text.split('\n').slice(0, -1)) lines.write(format(line));
  };
  const relayed = new Set<Readable>();
  return {
    logger,
    droppedLines: () => lines.droppedLines,
    relay: (log) => {
      passOn(log, write);
      relayed.add(log);
      log.once('close', () => relayed.delete(log));
    },
    flush: async () => {
      const signal = AbortSignal.timeout(RELAYED_WITHIN_MS);
      await Promise.allSettled([...relayed].map((log) => finished(log, { signal })));
      await lines.flush();
    },
  };
}

/** Whole lines only, so that those of several processes never mix. */
function passOn(log: Readable, write: (lines: string) => void): void {
  let rest = '';
  log.setEncoding('utf8');
  log.on('data', (chunk: string) => {
    const end = chunk.lastIndexOf('\n') + 1;
    if (end > 0) write(rest + chunk.slice(0, end));
    rest = end > 0 ? chunk.slice(end) : rest + chunk;
  });
  log.on('end', () => {
    if (rest !== '') write(`${rest}\n`);
  });
}

async function terminalFormat(): Promise<LineFormat | null> {
  if (!process.stderr.isTTY) return null;
  // A gateway that nobody watches needs none of it.
  const { prettyFactory } = await import('pino-pretty');
  const colorize = process.env['NO_COLOR'] === undefined;
  const format = prettyFactory({ colorize, ignore: 'service,pid', translateTime: 'SYS:HH:MM:ss.l', singleLine: true });
  return (line) => format(line) ?? '';
}

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

/** Makes a logger. */
export function createLogger({ level, format = null, destination = new StandardError() }: LogOptions): Logger {
  return pino(
    {
      level,
      base: { service: 'evalgate', pid: process.pid },
      timestamp: createTimestamp(),
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: logError, error: logError },
      redact: REDACTED,
      hooks: { logMethod: nameErrors },
    },
    format === null ? destination : { write: (line) => destination.write(format(line)) },
  );
}

/**
 * A logger for lines whose members are fixed in the code and hold nothing secret, such as the line of each request:
 * looking for secrets would cost more than writing them. `shared`: members that all of them have. Its level is `info`,
 * whatever the parent's is.
 */
export function withoutRedaction(logger: Logger, shared: object): Logger {
  return logger.child(shared, { redact: [], level: 'info' });
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

/** As pino's own ISO time, rendered once per millisecond: a busy process writes many lines in one. */
function createTimestamp(): () => string {
  let [atMs, text] = [0, ''];
  return () => {
    const nowMs = Date.now();
    if (nowMs !== atMs) [atMs, text] = [nowMs, `,"time":"${new Date(nowMs).toISOString()}"`];
    return text;
  };
}
