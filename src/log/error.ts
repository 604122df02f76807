/** The code and the text of an error, and how it is logged: where it happened, never the request it was about. Pure. */

/** The code of an error of the system or of Node, such as `ENOENT`; null for one that has none. */
export function systemCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}

/** The private text of what was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string | undefined;
  /** Only the frames of the stack; its first line would repeat the message. */
  readonly stack?: string | undefined;
  readonly cause?: LoggedError | undefined;
  readonly errors?: readonly LoggedError[] | undefined;
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
  const inner = (error: unknown): LoggedError | undefined =>
    error === undefined || causesLeft === 0 ? undefined : describe(error, causesLeft - 1);
  const errors = thrown instanceof AggregateError ? thrown.errors.slice(0, MAX_ERRORS).map(inner) : [];
  return {
    type: thrown.name,
    message: publicPart(thrown.message.slice(0, MAX_MESSAGE_LENGTH)),
    code: systemCode(thrown) ?? undefined,
    stack: framesOf(thrown.stack),
    cause: inner(thrown.cause),
    errors: errors.length === 0 ? undefined : errors.filter((error) => error !== undefined),
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
