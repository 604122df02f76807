/**
 * Runs Redis's scripts as Lua. Redis has Lua 5.1, whose numbers are all doubles; fengari has 5.3, whose whole numbers are
 * integers of 32 bits. So each number in a script's text is written as a double, and what Redis replies is one.
 */
import type * as Fengari from 'fengari';
import { Failure, flat, type Reply, Status } from './reply.ts';

// Whole doubles print as in 5.1, without `.0`. fengari reads its options once, when it is loaded.
process.env['FENGARICONF'] = JSON.stringify({ LUA_COMPAT_FLOATSTRING: true });
const { lua, lauxlib, lualib }: typeof Fengari = await import('fengari');

/** Runs a command of the script that runs now. Throws a Failure for an error reply. */
type Call = (words: readonly string[]) => Reply;

const LIBRARIES = [
  ['_G', lualib.luaopen_base],
  ['table', lualib.luaopen_table],
  ['string', lualib.luaopen_string],
  ['math', lualib.luaopen_math],
] as const;
/** As Redis's: what 5.3 has moved, and the tables that Redis adds. */
const PRELUDE = `
local call = call
unpack = table.unpack
redis = {call = call, pcall = function(...)
  local isDone, reply = pcall(call, ...)
  return reply
end, error_reply = function(text) return {err = text} end, status_reply = function(text) return {ok = text} end}
cjson = {decode = decode, encode = encode}
_G.call, decode, encode = nil, nil, nil
`;
const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1');
const [ERR, OK_FIELD] = [bytes('err'), bytes('ok')];
/** `cjson.null`. */
const NULL = {};

export class LuaScripts {
  readonly #state = lauxlib.luaL_newstate();
  /** Places of compiled scripts in Lua's registry, by their text. */
  readonly #compiled = new Map<string, number>();
  #call: Call = () => null;

  constructor() {
    const state = this.#state;
    for (const [name, open] of LIBRARIES) {
      lauxlib.luaL_requiref(state, bytes(name), open, 1);
      lua.lua_pop(state, 1);
    }
    this.#define('call', () => this.#redisCall());
    this.#define('decode', () => this.#decode());
    this.#define('encode', () => {
      lua.lua_pushstring(state, Buffer.from(JSON.stringify(this.#toJson(1))));
      return 1;
    });
    this.#load(PRELUDE, 'prelude');
    if (lua.lua_pcall(state, 0, 0, 0) !== lua.LUA_OK) throw new Error('the prelude of the scripts fails');
  }

  /** Returns what the script replies; a Failure if it fails. */
  run(script: string, keys: readonly string[], args: readonly string[], call: Call): Reply {
    const state = this.#state;
    this.#call = call;
    this.#setGlobal('KEYS', keys);
    this.#setGlobal('ARGV', args);
    try {
      lua.lua_rawgeti(state, lua.LUA_REGISTRYINDEX, this.#placeOf(script));
      const status = lua.lua_pcall(state, 0, 1, 0);
      const reply = this.#toReply(-1);
      if (status === lua.LUA_OK) return reply;
      return reply instanceof Failure ? reply : new Failure(`ERR ${typeof reply === 'string' ? reply : 'unknown'}`);
    } finally {
      lua.lua_settop(state, 0);
    }
  }

  #placeOf(script: string): number {
    const known = this.#compiled.get(script);
    if (known !== undefined) return known;
    this.#load(withDoubles(script), 'user_script');
    const place = lauxlib.luaL_ref(this.#state, lua.LUA_REGISTRYINDEX);
    this.#compiled.set(script, place);
    return place;
  }

  #load(code: string, name: string): void {
    const text = bytes(code);
    if (lauxlib.luaL_loadbuffer(this.#state, text, text.length, bytes(`@${name}`)) === lua.LUA_OK) return;
    throw new Error(`a script cannot be compiled: ${textOf(lua.lua_tostring(this.#state, -1))}`);
  }

  #define(name: string, run: () => number): void {
    lua.lua_pushjsfunction(this.#state, run);
    lua.lua_setglobal(this.#state, bytes(name));
  }

  #setGlobal(name: string, items: readonly string[]): void {
    this.#push(items);
    lua.lua_setglobal(this.#state, bytes(name));
  }

  #redisCall(): number {
    const state = this.#state;
    const words = Array.from({ length: lua.lua_gettop(state) }, (_, index) => this.#wordAt(index + 1));
    try {
      this.#push(flat(this.#call(words)));
      return 1;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.#push(error);
    }
    return lua.lua_error(state);
  }

  /** An argument of a command. Redis prints numbers with up to 17 digits. */
  #wordAt(index: number): string {
    const isNumber = lua.lua_type(this.#state, index) === lua.LUA_TNUMBER;
    return isNumber ? String(lua.lua_tonumber(this.#state, index)) : textOf(lua.lua_tostring(this.#state, index));
  }

  #push(reply: Reply): void {
    const state = this.#state;
    if (reply === null) lua.lua_pushboolean(state, false);
    else if (typeof reply === 'number') lua.lua_pushnumber(state, reply);
    else if (typeof reply === 'string') lua.lua_pushstring(state, bytes(reply));
    else if (reply instanceof Status) this.#pushField(OK_FIELD, reply.text);
    else if (reply instanceof Failure) this.#pushField(ERR, reply.message);
    else {
      const items = [...reply.values()];
      lua.lua_createtable(state, items.length, 0);
      for (const [index, item] of items.entries()) {
        this.#push(item);
        lua.lua_rawseti(state, -2, index + 1);
      }
    }
  }

  #pushField(name: Uint8Array, text: string): void {
    lua.lua_createtable(this.#state, 0, 1);
    lua.lua_pushstring(this.#state, bytes(text));
    lua.lua_setfield(this.#state, -2, name);
  }

  #toReply(index: number): Reply {
    const state = this.#state;
    const type = lua.lua_type(state, index);
    if (type === lua.LUA_TNUMBER) return Math.trunc(lua.lua_tonumber(state, index));
    if (type === lua.LUA_TSTRING) return textOf(lua.lua_tostring(state, index));
    if (type === lua.LUA_TBOOLEAN) return lua.lua_toboolean(state, index) ? 1 : null;
    if (type !== lua.LUA_TTABLE) return null;
    const failure = this.#fieldOf(index, ERR);
    if (failure !== null) return new Failure(failure);
    const status = this.#fieldOf(index, OK_FIELD);
    return status === null ? this.#itemsOf(index, () => this.#toReply(-1)) : new Status(status);
  }

  #fieldOf(index: number, name: Uint8Array): string | null {
    const isText = lua.lua_getfield(this.#state, index, name) === lua.LUA_TSTRING;
    const text = isText ? textOf(lua.lua_tostring(this.#state, -1)) : null;
    lua.lua_pop(this.#state, 1);
    return text;
  }

  /** Up to the first nil. */
  #itemsOf<T>(index: number, read: () => T): T[] {
    const table = lua.lua_absindex(this.#state, index);
    const items: T[] = [];
    while (lua.lua_rawgeti(this.#state, table, items.length + 1) !== lua.LUA_TNIL) {
      items.push(read());
      lua.lua_pop(this.#state, 1);
    }
    lua.lua_pop(this.#state, 1);
    return items;
  }

  #decode(): number {
    const text = Buffer.from(lua.lua_tostring(this.#state, 1) ?? []).toString();
    try {
      this.#pushJson(JSON.parse(text));
      return 1;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      lua.lua_pushstring(this.#state, bytes('Expected value but found invalid token'));
    }
    return lua.lua_error(this.#state);
  }

  #pushJson(value: unknown): void {
    const state = this.#state;
    if (typeof value === 'number') lua.lua_pushnumber(state, value);
    else if (typeof value === 'string') lua.lua_pushstring(state, Buffer.from(value));
    else if (typeof value === 'boolean') lua.lua_pushboolean(state, value);
    else if (typeof value !== 'object' || value === null) lua.lua_pushlightuserdata(state, NULL);
    else if (Array.isArray(value)) {
      lua.lua_createtable(state, value.length, 0);
      for (const [index, item] of value.entries()) {
        this.#pushJson(item);
        lua.lua_rawseti(state, -2, index + 1);
      }
    } else {
      lua.lua_createtable(state, 0, 0);
      for (const [name, item] of Object.entries(value)) {
        this.#pushJson(item);
        lua.lua_setfield(state, -2, Buffer.from(name));
      }
    }
  }

  /** An empty table is an object, as cjson has it. */
  #toJson(index: number): unknown {
    const state = this.#state;
    const type = lua.lua_type(state, index);
    // With the 14 digits that cjson writes.
    if (type === lua.LUA_TNUMBER) return Number(lua.lua_tonumber(state, index).toPrecision(14));
    if (type === lua.LUA_TSTRING) return Buffer.from(lua.lua_tostring(state, index) ?? []).toString();
    if (type === lua.LUA_TBOOLEAN) return lua.lua_toboolean(state, index);
    if (type !== lua.LUA_TTABLE) return null;
    const items = this.#itemsOf(index, () => this.#toJson(-1));
    if (items.length > 0) return items;
    const table = lua.lua_absindex(state, index);
    const fields: Record<string, unknown> = {};
    lua.lua_pushnil(state);
    while (lua.lua_next(state, table) !== 0) {
      fields[Buffer.from(lua.lua_tostring(state, -2) ?? []).toString()] = this.#toJson(-1);
      lua.lua_pop(state, 1);
    }
    return fields;
  }
}

function textOf(value: Uint8Array | null): string {
  return value === null ? '' : Buffer.from(value).toString('latin1');
}

/** Comments, strings, names and numbers with a point or an exponent stay; other numbers get a point. */
const WORD = /--[^\n]*|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi;

function withDoubles(script: string): string {
  return script.replaceAll(WORD, (word) => (/^\d+$/.test(word) ? `${word}.0` : word));
}
