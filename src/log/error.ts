/** How errors are logged: what happened and where, never the request they were about. Pure. */

export interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  /** Only the frames of the stack; its first line would repeat the message. */
  readonly stack?: string;
  readonly cause?: LoggedError;
  readonly errors?: readonly LoggedError[];
}

const MAX_CAUSES = 4;
const MAX_ERRORS = 4;
const MAX_MESSAGE_LENGTH = 1000;

/**
 * Takes an error's private message, code, frames and causes, and leaves every other member out: HTTP and Redis
 * clients hang the request, its headers and its address on their errors. Anything may be thrown, so anything is taken.
 */
export function logError(thrown: unknown): LoggedError {
  return describe(thrown, MAX_CAUSES);
}

function describe(thrown: unknown, causesLeft: number): LoggedError {
  if (!(thrown instanceof Error)) return { type: typeof thrown, message: 'a value that is no Error was thrown' };
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
  const stack = framesOf(thrown.stack);
  const goDeeper = causesLeft > 0;
  const errors = thrown instanceof AggregateError ? thrown.errors.slice(0, MAX_ERRORS) : [];
  return {
    type: thrown.name,
    message: publicPart(thrown.message.slice(0, MAX_MESSAGE_LENGTH)),
    ...(code === undefined ? {} : { code }),
    ...(stack === undefined ? {} : { stack }),
    ...(goDeeper && thrown.cause !== undefined ? { cause: describe(thrown.cause, causesLeft - 1) } : {}),
    ...(goDeeper && errors.length > 0
      ? { errors: errors.map((error: unknown) => describe(error, causesLeft - 1)) }
      : {}),
  };
}

function framesOf(stack: string | undefined): string | undefined {
  const frames = stack?.split('\n').filter((line) => /^\s+at /.test(line));
  return frames === undefined || frames.length === 0 ? undefined : frames.map((frame) => frame.trim()).join('\n');
}

/** Addresses with a scheme, up to what ends them in a sentence or in JSON. */
const ADDRESS = /\b(?:https?|rediss?(?:\+[a-z]+)?):\/\/[^\s"'\\<>]+/gi;
const TOKEN = /\bevg_[A-Za-z0-9]{8,}/g;
const CREDENTIALS = /\b(Bearer|Basic) +[^\s"'\\,]+/gi;

/** The text of an error without addresses, keys or credentials. */
function publicPart(text: string): string {
  return text
    .replaceAll(ADDRESS, '[address]')
    .replaceAll(TOKEN, '[hidden]')
    .replaceAll(CREDENTIALS, '$1 [hidden]')
    .replaceAll(/\bconnect (E[A-Z]+) \S+(?: - Local \([^)]*\))?/g, 'connect $1')
    .replaceAll(/\b(getaddrinfo|query[A-Za-z]*) (E[A-Z_]+) \S+/g, '$1 $2')
    .replaceAll(/\bHost: \S+ is not/g, 'the host is not')
    .replaceAll(/(altnames: .*?)(DNS|IP Address|IP):.*/g, '$1[address]');
}
