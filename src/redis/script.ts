/** Lua scripts, as commands that ioredis defines: it sends their digest, and their text if Redis does not know them. */
import type { Result } from 'ioredis';
import type { z } from 'zod';
import type { RedisAddress } from './address.ts';
import type { RedisClient } from './open-connection.ts';
import { largestOf } from './value-limit.ts';

export type ScriptArgument = string | number | Buffer;

type ScriptName = `script:${string}`;

declare module 'ioredis' {
  /** All scripts are called alike, as `runScript` defines them. */
  interface RedisCommander<Context> {
    [name: ScriptName]: (keys: number, ...keysAndArgs: ScriptArgument[]) => Result<unknown, Context>;
  }
}

export interface RedisScript {
  readonly name: ScriptName;
  readonly lua: string;
}

export interface ScriptCall {
  /** All of one slot. */
  readonly keys: readonly string[];
  readonly args: readonly ScriptArgument[];
}

/** So many things at once, each several commands: no script holds Redis for longer than about a millisecond. */
const MOST_AT_ONCE = 16;

/** The part of a `RedisLink` that sends commands. */
interface Runs {
  readonly run: <T>(send: (client: RedisClient) => Promise<T>, largestBytes: number) => Promise<T>;
}

/** `name` is only for ioredis: no two scripts have the same. */
export function defineScript(name: string, lua: string): RedisScript {
  return { name: `script:${name}`, lua };
}

/**
 * Runs it. The reply is what the script returns, to be checked by the caller. With `Buffer`, strings in the reply are
 * Buffers. Rejects as `RedisLink.run` does.
 */
export function runScript(
  redis: Runs,
  script: RedisScript,
  call: ScriptCall,
  variant: '' | 'Buffer' = '',
): Promise<unknown> {
  return redis.run((client) => runOn(client, script, call, variant), largestOf(call.args));
}

/**
 * Divides what one script is to do for several cache keys: in a Cluster each lies in a slot of its own, and so needs a call of
 * its own. `mostAtOnce`: how many one call may take.
 */
export function inCalls<T>(
  redis: { readonly kind: RedisAddress['kind'] },
  all: readonly T[],
  mostAtOnce = MOST_AT_ONCE,
): readonly (readonly T[])[] {
  const most = redis.kind === 'cluster' ? 1 : mostAtOnce;
  const calls: (readonly T[])[] = [];
  for (let from = 0; from < all.length; from += most) calls.push(all.slice(from, from + most));
  return calls;
}

/** The reply of a script that returns JSON, checked. Throws a ZodError, or a SyntaxError. */
export function parseReply<S extends z.ZodType>(schema: S, reply: unknown): z.output<S> {
  return schema.parse(JSON.parse(String(reply)));
}

/** Runs a script on one connection, whether Redis counts as up or not. Rejects as ioredis does. */
export async function runOn(
  client: RedisClient,
  { name, lua }: RedisScript,
  { keys, args }: ScriptCall,
  variant: '' | 'Buffer' = '',
): Promise<unknown> {
  if (client[name] === undefined) client.defineCommand(name, { lua });
  return await client[`${name}${variant}`]?.(keys.length, ...keys, ...args);
}
