/** Lua scripts, sent by their digest: their text goes over the wire only where Redis doesn't know them yet. */
import { createHash } from 'node:crypto';
import type { RedisClient } from './client.ts';
import { type CommandArgument, sendLean } from './lean-command.ts';

export interface RedisScript {
  readonly lua: string;
  /** SHA-1 of the text, in hex, as EVALSHA takes it. */
  readonly sha: string;
}

export interface ScriptCall {
  /** All of one slot. */
  readonly keys: readonly string[];
  readonly args: readonly CommandArgument[];
}

export function defineScript(lua: string): RedisScript {
  return { lua, sha: createHash('sha1').update(lua).digest('hex') };
}

/** A script that Redis doesn't know was not run, so that sending it again runs it once. */
function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}

/** Runs it. The reply is whatever the script returns, to be checked by the caller. Rejects as any command does. */
export function runScript(client: RedisClient, script: RedisScript, call: ScriptCall): Promise<unknown> {
  return run(client, script, call, 'utf8');
}

/** The same for scripts that return bytes: strings in the reply are Buffers. */
export function runScriptForBytes(client: RedisClient, script: RedisScript, call: ScriptCall): Promise<unknown> {
  return run(client, script, call, null);
}

async function run(
  client: RedisClient,
  { lua, sha }: RedisScript,
  { keys, args }: ScriptCall,
  replyEncoding: 'utf8' | null,
): Promise<unknown> {
  try {
    return await sendLean(client, 'evalsha', [sha, keys.length, ...keys, ...args], replyEncoding);
  } catch (error) {
    if (!isUnknownScript(error)) throw error;
    return await sendLean(client, 'eval', [lua, keys.length, ...keys, ...args], replyEncoding);
  }
}
