/** The errors of commands to Redis: no answer, an answer that refuses, or nothing sent. */
import { messageOf } from '../log/error.ts';

/** No answer came in time: what was asked for may have been done or not. */
export class RedisTimeoutError extends Error {
  override readonly name = 'RedisTimeoutError';

  constructor(timeoutMs: number) {
    super(`Redis did not answer within ${Math.round(timeoutMs)} ms`);
  }
}

/** A command was not sent, so what it asks for was certainly not done. */
export class NotSentError extends Error {
  override readonly name = 'NotSentError';
}

/** The connection is closed, and nobody said why. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';

  constructor(message = 'The connection to Redis is closed.') {
    super(message);
  }
}

/** Runs what follows a change that was made. If it cannot be sent, that says nothing of the change itself. */
export async function afterChange<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new Error(`after the change: ${messageOf(error)}`, { cause: error });
  }
}

/** Redis answers, but some slots of the Cluster have no node. */
export class ClusterIncompleteError extends Error {
  override readonly name = 'ClusterIncompleteError';
  override readonly message = 'The Cluster does not serve all of its slots.';
}

/** Redis refused the connection itself, or a command with which each one begins, and the connection is not used. */
export class HandshakeError extends Error {
  override readonly name = 'HandshakeError';
  readonly command: 'CONNECT' | 'AUTH' | 'SELECT';
  /** The number of the database of the address. */
  readonly db: number;

  constructor(command: HandshakeError['command'], db: number, reply: unknown) {
    super(`Redis refuses ${command} (${replyText(reply) ?? 'no reply'})`, { cause: reply });
    this.command = command;
    this.db = db;
  }
}

/** Whether there is no answer of Redis to what was asked. */
export function isUnanswered(error: unknown): boolean {
  return [NotSentError, RedisTimeoutError, ConnectionLostError, ClusterIncompleteError].some(
    (unanswered) => error instanceof unanswered,
  );
}

function replyOf(error: unknown): string | null {
  if (error instanceof HandshakeError) return replyOf(error.cause);
  return error instanceof Error && error.name === 'ReplyError' ? error.message : null;
}

/** The code of an error reply, its first word, such as `OOM` or `READONLY`; null for an error that is no reply. */
export function replyCode(error: unknown): string | null {
  return replyOf(error)?.split(' ', 1)[0] ?? null;
}

const MAX_TEXT_LENGTH = 500;

/** Where in one of evalgate's own scripts: it differs from script to script, and is news to nobody. */
const PLACE = / ?script: [0-9a-f]{40}, on @user_script:\d+\.?|(?<=f_)[0-9a-f]{40}|(?<=@user_script):\d+/g;

/**
 * An error reply word for word, in one line; null for an error that is none. The first quotation in it is a name of Redis's,
 * and is followed by words that were sent, such as a password.
 */
export function replyText(error: unknown): string | null {
  const line =
    replyOf(error)
      ?.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
      .replaceAll(PLACE, '')
      .trim() ?? null;
  return line?.replace(/^([^'`]*['`][^'`]*['`][^'`]*)['`].*$/, '$1...').slice(0, MAX_TEXT_LENGTH) ?? null;
}
