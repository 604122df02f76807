/** The errors of commands to Redis: no answer, an answer that refuses, or nothing sent. */

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

/** Redis refused a command with which each connection begins, and the connection is not used. */
export class HandshakeError extends Error {
  override readonly name = 'HandshakeError';
  readonly command: 'AUTH' | 'SELECT' | 'CLIENT SETNAME';
  /** The number of the database of the address. */
  readonly db: number;

  constructor(command: HandshakeError['command'], db: number, reply: unknown) {
    super(`Redis refuses ${command} (${replyCode(reply) ?? 'no reply'})`, { cause: reply });
    this.command = command;
    this.db = db;
  }
}

/** The code of an error reply, its first word, such as `OOM` or `READONLY`; null for an error that is no reply. */
export function replyCode(error: unknown): string | null {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return null;
  return error.message.split(' ', 1)[0] ?? null;
}
