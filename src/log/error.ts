/** How errors are logged: what happened and where, never the request they were about. Pure. */
import { scrubAddresses } from './scrub.ts';

export interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  /** The frames of the stack alone; its first line would repeat the message. */
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
    message: scrubAddresses(thrown.message.slice(0, MAX_MESSAGE_LENGTH)),
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
