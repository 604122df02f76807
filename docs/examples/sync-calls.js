#!/usr/bin/env node
/**
 * Keeps a copy of all calls of a workspace: a line of JSON on stdout for each call that is new, has changed or is gone.
 * docs/sync.md says why it does what it does. Node.js 20 or newer, nothing else.
 *
 *     export EVALGATE_URL=http://127.0.0.1:8080 EVALGATE_KEY=evg_...
 *     node sync-calls.js --workspace 5f0c3d0a-8a53-4d0e-9d6e-2f6f3c1b7a10 --state calls.json >> changes.jsonl
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const HOUR_MS = 3_600_000;
/** A call is listed once its evaluation is completed, at the place of its `created_at`. This is how late that may be. */
const LOOK_BACK_MS = 24 * HOUR_MS;
/** How often the whole list is read: that alone shows what has changed further back, and what is gone. */
const FULL_EVERY_MS = 24 * HOUR_MS;
const MOST_CALLS_OF_A_PAGE = 100;
/** Calls that a page has in common with those before it. */
const OVERLAP = 10;
const MOST_TRIES = 6;
/** Of a call that was missing from the list: what can't be told now is asked again with the next whole list. */
const MOST_TRIES_IF_GONE = 2;
const MOST_BREAKS = 20;

/** What is kept from run to run. */
export function newState() {
  return { workspaceId: null, calls: {}, pages: {}, lastRunMs: null, lastFullMs: null };
}

/**
 * Brings `state` up to date and tells of each change by `emit({ change: 'new' | 'changed' | 'gone', call })`. Where it
 * throws, `state` holds what was told of until then: keep it, or the next run tells of that again. `now` and `sleep` are
 * for tests.
 */
export async function syncCalls({ url, key, workspaceId, state, emit, isFull, now = Date.now, sleep = wait }) {
  const api = new Api({ url: url.replace(/\/+$/, ''), key, now, sleep });
  checkState(state, workspaceId.toLowerCase());
  await checkKey(api, workspaceId);
  state.workspaceId = workspaceId.toLowerCase();
  const startedMs = now();
  const { lastRunMs, lastFullMs } = state;
  const isWhole = isFull || lastRunMs === null || lastFullMs === null || startedMs - lastFullMs >= FULL_EVERY_MS;
  const copy = new Copy(state, emit);
  const until = isWhole ? null : new Date(lastRunMs - LOOK_BACK_MS).toISOString();
  const seen = await walk(api, copy, { workspaceId, until });
  if (isWhole) await askForMissing(api, copy, seen);
  state.lastRunMs = startedMs;
  if (isWhole) state.lastFullMs = startedMs;
  return { isWhole, calls: seen.size, requests: api.requests };
}

/** The calls of another workspace would be asked for one by one, as missing. */
function checkState(state, workspaceId) {
  const before = state.workspaceId ?? workspaceId;
  if (before !== workspaceId) throw new Error(`the state is of the workspace ${before}, not of ${workspaceId}`);
}

/** Costs none of the quota, and says at once what would else be a 403 later on. */
async function checkKey(api, workspaceId) {
  const { key } = (await api.read('/v2/key')).body;
  if (key === undefined) throw new Error('/v2/key was answered with something else: is this the address of evalgate?');
  if (!key.scopes.includes('calls.read')) throw new Error(`the key ${key.id} lacks the scope calls.read`);
  if (!key.workspace_ids.includes(workspaceId.toLowerCase())) {
    throw new Error(`the key ${key.id} may not see the workspace ${workspaceId}`);
  }
}

/**
 * Reads the list from its beginning to its end, or to what was created before `until`. Each page must have a call in
 * common with those before it: then there is none between them, however old either page is, and however many calls have
 * come since.
 */
async function walk(api, copy, { workspaceId, until }) {
  const seen = new Set();
  let joined = new Set();
  let end = 0;
  let overlap = OVERLAP;
  let breaks = 0;
  for (;;) {
    const page = pageAt(Math.max(0, end - overlap));
    const path = `/v2/calls?workspaceId=${workspaceId}&page=${page.number}&pageSize=${page.size}`;
    const { body, asOfMs, freshForMs } = await copy.page(api, path);
    for (const call of body.calls) copy.take(call, asOfMs);
    for (const { id } of body.calls) seen.add(id);
    const isFirst = page.number === 1;
    if (isFirst || body.calls.some(({ id }) => joined.has(id))) {
      // What began anew at the front and doesn't reach what was joined before is not joined with it.
      if (isFirst && !body.calls.some(({ id }) => joined.has(id))) joined = new Set();
      for (const { id } of body.calls) joined.add(id);
      end = page.number * page.size;
      overlap = OVERLAP;
      const isPast = until !== null && body.calls.length > 0 && body.calls.at(-1).created_at < until;
      if (isPast || end >= body.pagination.total_count) return seen;
    } else {
      // It is an older copy than the page before, or calls are gone. Step back, once the copy is no longer fresh.
      breaks += 1;
      if (breaks > MOST_BREAKS) throw new Error('the list changes faster than it can be read');
      overlap *= 2;
      await api.sleep(Math.max(1000, freshForMs));
    }
  }
}

/** Of the pages that begin at that place of the list or before it, the one that reaches furthest. */
export function pageAt(place) {
  let best = { number: 1, size: MOST_CALLS_OF_A_PAGE };
  for (let size = 1; size <= MOST_CALLS_OF_A_PAGE; size += 1) {
    const number = Math.floor(place / size) + 1;
    if (number * size > best.number * best.size) best = { number, size };
  }
  return best;
}

/** Calls that were not among those read: gone, or being evaluated anew. Their own addresses say so before they are dropped. */
async function askForMissing(api, copy, seen) {
  for (const id of copy.ids()) {
    if (!seen.has(id) && (await isGone(api, id))) copy.drop(id);
  }
  copy.forgetOldPages();
}

/** One that the store has in a form that can't be published is left out of the list and fails by itself: it is not gone. */
async function isGone(api, id) {
  try {
    return (await api.get(`/v2/calls/${id}`, { mostTries: MOST_TRIES_IF_GONE })).status === 404;
  } catch (error) {
    if (error.cause?.status >= 500) return false;
    throw error;
  }
}

/** The calls and pages of the state. */
class Copy {
  #state;
  #emit;
  #used = new Set();

  constructor(state, emit) {
    this.#state = state;
    this.#emit = emit;
  }

  ids() {
    return Object.keys(this.#state.calls);
  }

  /** A page that is the same as last time is not sent again. */
  async page(api, path) {
    const { pages } = this.#state;
    const answer = await api.read(path, pages[path]?.etag);
    if (answer.status === 200) pages[path] = { etag: answer.etag, body: answer.body };
    this.#used.add(path);
    return { ...answer, body: pages[path].body };
  }

  /** Copies of different age may come in any order: an older one never takes the place of a newer one. */
  take(call, asOfMs) {
    const { calls } = this.#state;
    const known = calls[call.id];
    if (known !== undefined && asOfMs < known.asOfMs) return;
    calls[call.id] = { call, asOfMs };
    if (known === undefined) this.#emit({ change: 'new', call });
    else if (JSON.stringify(known.call) !== JSON.stringify(call)) this.#emit({ change: 'changed', call });
  }

  drop(id) {
    const { call } = this.#state.calls[id];
    delete this.#state.calls[id];
    this.#emit({ change: 'gone', call });
  }

  forgetOldPages() {
    const { pages } = this.#state;
    for (const path of Object.keys(pages)) if (!this.#used.has(path)) delete pages[path];
  }
}

class Api {
  #options;
  requests = 0;

  constructor(options) {
    this.#options = options;
  }

  sleep(ms) {
    return this.#options.sleep(ms);
  }

  /** As `get`, of what is always there. */
  async read(path, etag) {
    const answer = await this.get(path, { etag });
    if (answer.status === 404) throw new Error(`${path} was answered with 404: is this the address of evalgate?`);
    return answer;
  }

  /**
   * A 200, 304 or 404. `asOfMs`: when the gateway had it from the store; `freshForMs`: for how long it asks no more. Throws
   * an Error for any other answer in the end; its `cause.status` is that of the last one, null where there was none.
   */
  async get(path, { etag, mostTries = MOST_TRIES } = {}) {
    for (let tries = 1; ; tries += 1) {
      const { status, headers, body, atMs, reason } = await this.#ask(path, etag);
      if (reason === null) return { status, body, etag: headers.get('etag'), ...timesOf(headers, atMs) };
      const isFull = status === 429;
      const isPassing = status === null || status >= 500;
      if (!isFull && (!isPassing || tries === mostTries)) throw new Error(`${path}: ${reason}`, { cause: { status } });
      await this.sleep(this.#retryAfterMs(headers?.get('retry-after') ?? null) ?? 1000 * 2 ** tries);
      if (isFull) tries = 0;
    }
  }

  /** `reason` is null for an answer that can be used. */
  async #ask(path, etag) {
    const { url, key } = this.#options;
    const sent = { authorization: `Bearer ${key}`, ...(etag === undefined ? {} : { 'if-none-match': etag }) };
    this.requests += 1;
    try {
      const response = await fetch(`${url}${path}`, { headers: sent });
      const { status, headers } = response;
      const atMs = this.#options.now();
      // Read here: a connection may break off in the middle of an answer.
      const text = await response.text();
      if (![200, 304, 404].includes(status)) return { status, headers, reason: `${status} ${text}` };
      return { status, headers, body: status === 200 ? JSON.parse(text) : null, atMs, reason: null };
    } catch (error) {
      return { status: null, headers: null, reason: String(error) };
    }
  }

  /** Exact with a 429 of evalgate: the next request is admitted then, if nobody else uses the key. Others may give a date. */
  #retryAfterMs(value) {
    if (value === null) return null;
    const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - this.#options.now();
    return Number.isNaN(ms) ? null : Math.max(0, ms);
  }
}

function timesOf(headers, atMs) {
  const ageSeconds = Number(headers.get('age') ?? 0);
  const maxAgeSeconds = Number(/max-age=(\d+)/.exec(headers.get('cache-control') ?? '')?.[1] ?? 0);
  return { asOfMs: atMs - ageSeconds * 1000, freshForMs: Math.max(0, maxAgeSeconds - ageSeconds) * 1000 };
}

async function readState(file) {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return newState();
    throw error;
  }
}

function print(change) {
  process.stdout.write(`${JSON.stringify(change)}\n`);
}

async function main() {
  const { values } = parseArgs({
    options: { workspace: { type: 'string' }, state: { type: 'string' }, full: { type: 'boolean', default: false } },
  });
  const { EVALGATE_URL: url = 'http://127.0.0.1:8080', EVALGATE_KEY: key } = process.env;
  const { workspace: workspaceId, state: file, full: isFull } = values;
  if (key === undefined || workspaceId === undefined || file === undefined) {
    throw new Error('usage: EVALGATE_KEY=... node sync-calls.js --workspace UUID --state FILE [--full]');
  }
  const state = await readState(file);
  let done;
  try {
    done = await syncCalls({ url, key, workspaceId, state, emit: print, isFull });
  } finally {
    // Also of a run that failed: what it told of must not be told of again. Written whole or not at all.
    await writeFile(`${file}.new`, JSON.stringify(state));
    await rename(`${file}.new`, file);
  }
  process.stderr.write(`${done.isWhole ? 'all' : 'recent'}: ${done.calls} calls in ${done.requests} requests\n`);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
