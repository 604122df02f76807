/** Lua scripts, sent by their digest: their text goes over the wire only where Redis doesn't know them yet. */
import { createHash } from 'node:crypto';
import type { RedisClient } from './client.ts';

export interface RedisScript {
  readonly lua: string;
  /** SHA-1 of the text, in hex, as EVALSHA takes it. */
  readonly sha: string;
}

export interface ScriptCall {
  /** All of one slot. */
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
}

export function defineScript(lua: string): RedisScript {
  return { lua, sha: createHash('sha1').update(lua).digest('hex') };
}

/** A script that Redis doesn't know was not run, so that sending it again runs it once. */
function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

/** Runs it. The reply is whatever the script returns, to be checked by the caller. Rejects as any command does. */
export async function runScript(
  client: RedisClient,
  script: RedisScript,
  { keys, args }: ScriptCall,
): Promise<unknown> {
  try {
    return await client.evalsha(script.sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!isUnknownScript(error)) throw error;
    return client.eval(script.lua, keys.length, ...keys, ...args);
  }
}

/** The same for scripts that return bytes: strings in the reply are Buffers. */
export async function runScriptForBytes(
  client: RedisClient,
  script: RedisScript,
  { keys, args }: ScriptCall,
): Promise<unknown> {
  try {
    return await client.callBuffer('evalsha', script.sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!isUnknownScript(error)) throw error;
    return client.callBuffer('eval', script.lua, keys.length, ...keys, ...args);
  }
}
