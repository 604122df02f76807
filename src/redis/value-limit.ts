/**
 * How large a value Redis takes. It closes the connection on which a larger one is sent, so that all commands under way there
 * are lost, before the whole value has arrived. Its settings say the limit; a user who may not read them costs one connection
 * to find out.
 */
import { replyCode } from './errors.ts';
import type { RedisServer } from './open-connection.ts';

/** No Redis can be set to take less. */
const LEAST_LIMIT_BYTES = 1024 * 1024;
/** The bytes that are sent around a value, when it counts against the limit of all that a client sends. */
const COMMAND_BYTES = 64 * 1024;
/** A connection can be lost for another reason: then larger values are tried again. */
const LEARNED_FOR_MS = 10 * 60_000;

/** A value is larger than what Redis takes, and was not sent. */
export class ValueTooLargeError extends Error {
  override readonly name = 'ValueTooLargeError';

  constructor(bytes: number) {
    super(`Redis takes no value of ${bytes} bytes`);
  }
}

export class ValueLimit {
  #maxBytes = Number.POSITIVE_INFINITY;
  /** The largest value that was taken. */
  #takenBytes = LEAST_LIMIT_BYTES;
  /** Until then nothing larger is sent, since a connection was lost with a value. */
  #learnedUntilMs = 0;

  takes(bytes: number): boolean {
    return bytes <= this.#maxBytes && (bytes <= this.#takenBytes || performance.now() > this.#learnedUntilMs);
  }

  noteTaken(bytes: number): void {
    if (bytes > this.#takenBytes) this.#takenBytes = bytes;
  }

  /** Learns from an error of a command with a value of that size. Returns whether the size can be its cause. */
  learn(bytes: number, error: unknown): boolean {
    const code = replyCode(error);
    if (bytes <= this.#takenBytes || (code !== null && code !== 'ERR')) return false;
    this.#learnedUntilMs = performance.now() + LEARNED_FOR_MS;
    return true;
  }

  /** Reads the settings of each server. Never rejects: many users may not. */
  async read(servers: readonly RedisServer[]): Promise<void> {
    const limits = await Promise.all(
      servers.map(async (server) => [
        await settingOf(server, 'proto-max-bulk-len'),
        (await settingOf(server, 'client-query-buffer-limit')) - COMMAND_BYTES,
      ]),
    );
    this.#maxBytes = Math.min(Number.POSITIVE_INFINITY, ...limits.flat());
  }
}

async function settingOf({ client }: RedisServer, name: string): Promise<number> {
  const reply: unknown = await client.config('GET', name).catch(() => null);
  const value: unknown = Array.isArray(reply) ? reply[1] : null;
  return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : Number.POSITIVE_INFINITY;
}

/** The size of the largest one. */
export function largestOf(values: readonly (string | number | Buffer)[]): number {
  let largest = 0;
  for (const value of values) {
    if (typeof value !== 'number') largest = Math.max(largest, Buffer.byteLength(value));
  }
  return largest;
}
