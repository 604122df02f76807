/** The part of fengari, a Lua virtual machine, that runs Redis's scripts (lua.ts). It has the names of Lua's own C API. */
declare module 'fengari' {
  /** Bytes. */
  type LuaString = Uint8Array;

  export interface LuaState {
    readonly isLuaState: unique symbol;
  }
  type LuaFunction = (state: LuaState) => number;

  export const lua: {
    readonly LUA_OK: number;
    readonly LUA_REGISTRYINDEX: number;
    readonly LUA_TNIL: number;
    readonly LUA_TBOOLEAN: number;
    readonly LUA_TNUMBER: number;
    readonly LUA_TSTRING: number;
    readonly LUA_TTABLE: number;
    lua_absindex(state: LuaState, index: number): number;
    lua_error(state: LuaState): never;
    lua_getfield(state: LuaState, index: number, key: LuaString): number;
    lua_gettop(state: LuaState): number;
    lua_createtable(state: LuaState, items: number, fields: number): void;
    lua_next(state: LuaState, index: number): number;
    lua_pcall(state: LuaState, args: number, results: number, handler: number): number;
    lua_pop(state: LuaState, count: number): void;
    lua_pushboolean(state: LuaState, value: boolean): void;
    lua_pushjsfunction(state: LuaState, run: LuaFunction): void;
    lua_pushlightuserdata(state: LuaState, value: object): void;
    lua_pushnil(state: LuaState): void;
    lua_pushnumber(state: LuaState, value: number): void;
    lua_pushstring(state: LuaState, value: LuaString): void;
    lua_rawgeti(state: LuaState, index: number, place: number): number;
    lua_rawseti(state: LuaState, index: number, place: number): void;
    lua_setfield(state: LuaState, index: number, key: LuaString): void;
    lua_setglobal(state: LuaState, name: LuaString): void;
    lua_getglobal(state: LuaState, name: LuaString): number;
    lua_settop(state: LuaState, top: number): void;
    lua_toboolean(state: LuaState, index: number): boolean;
    lua_tonumber(state: LuaState, index: number): number;
    /** Null for what is neither a string nor a number. */
    lua_tostring(state: LuaState, index: number): LuaString | null;
    lua_type(state: LuaState, index: number): number;
  };
  export const lauxlib: {
    luaL_loadbuffer(state: LuaState, code: LuaString, length: number, name: LuaString): number;
    luaL_newstate(): LuaState;
    luaL_ref(state: LuaState, table: number): number;
    luaL_requiref(state: LuaState, name: LuaString, open: LuaFunction, isGlobal: number): void;
  };
  export const lualib: {
    readonly luaopen_base: LuaFunction;
    readonly luaopen_math: LuaFunction;
    readonly luaopen_string: LuaFunction;
    readonly luaopen_table: LuaFunction;
  };
}
