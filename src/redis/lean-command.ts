/**
 * A command that leaves nothing behind. V8 makes a function that is assigned to a property (`this.reject = () => …`) in
 * the old generation, as ioredis does once a command. There it lies until the next full collection, and holds its command,
 * with arguments and answer, and all that in turn: what should have died young grew old, and full collections came every
 * few seconds under load. So here is the same command with functions that are made first and assigned then; for those that
 * a request waits for.
 */
import { Command } from 'ioredis';
import type { RedisClient } from './client.ts';

/** In ioredis' words: it has no code for it. */
export const TIMED_OUT = 'Command timed out';

type Reply = Parameters<Command['transformReply']>[0];

/** As ioredis takes them; a number is sent as its digits. */
export type CommandArgument = string | number | Buffer;

export class LeanCommand extends Command {
  #timer: NodeJS.Timeout | undefined;

  static {
    // Called by ioredis' constructor, where nothing private of this class is there yet; private in its types.
    Object.defineProperty(this.prototype, 'initPromise', {
      value(this: LeanCommand): void {
        LeanCommand.#begin(this);
      },
    });
  }

  /** Rejects the command unless it is settled by then. One that is sent on to another node keeps its time. */
  override setTimeout(delayMs: number): void {
    this.#timer ??= setTimeout(() => {
      if (!this.isSettled) this.reject(new Error(TIMED_OUT));
    }, delayMs);
  }

  static #begin(command: LeanCommand): void {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const fail = (error: Error): void => {
      command.#settle();
      reject(error);
    };
    const succeed = (reply: Reply): void => {
      try {
        resolve(command.transformReply(reply));
      } catch (error) {
        reject(error);
      }
      command.#settle();
      command.isResolved = true;
    };
    command.stringifyArguments();
    command.promise = promise;
    command.resolve = succeed;
    command.reject = fail;
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.isSettled = true;
  }
}

/** Sends it. Strings in the reply are Buffers where the encoding is null. Rejects as any command does. */
export function sendLean(
  client: RedisClient,
  name: string,
  args: CommandArgument[],
  replyEncoding: 'utf8' | null,
): Promise<unknown> {
  return Promise.resolve(client.sendCommand(new LeanCommand(name, args, { replyEncoding })));
}

/** What a hash has in these fields, each a Buffer, or null where it has none. Rejects as any command does. */
export async function hashFields(
  client: RedisClient,
  key: string,
  fields: readonly string[],
): Promise<readonly unknown[]> {
  const reply = await sendLean(client, 'hmget', [key, ...fields], null);
  if (!Array.isArray(reply)) throw new TypeError('HMGET is answered with a list.');
  const values: readonly unknown[] = reply;
  return values;
}
