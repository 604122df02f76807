/**
 * @koa/router in its CommonJS form: the other one imports Node's HTTP as a module, which node-http.ts says the price of. Types come
 * from the library itself.
 */
import { createRequire } from 'node:module';
import type * as KoaRouter from '@koa/router';

type Library = typeof KoaRouter;

function isLibrary(value: unknown): value is Library {
  // The library exports the class itself, with its names as members.
  return typeof value === 'function' && 'Router' in value && typeof value.Router === 'function';
}

const library: unknown = createRequire(import.meta.url)('@koa/router');
if (!isLibrary(library)) throw new Error('@koa/router has no Router.');

export const { Router } = library;
