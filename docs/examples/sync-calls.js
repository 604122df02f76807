#!/usr/bin/env node
/**
 * Keeps a copy of all calls of a workspace: one line of JSON on stdout per call that is new, has changed or is gone.
 * docs/sync.md explains the method, --help the options. It needs Node.js 20 or newer and nothing else.
 *
 *     export EVALGATE_URL=http://127.0.0.1:8080 EVALGATE_KEY=evg_...
 *     node sync-calls.js --state calls.json >> changes.jsonl
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const HELP = `usage: EVALGATE_KEY=evg_... node sync-calls.js --state FILE [--workspace UUID] [--full]

Prints one line of JSON per call that is new, has changed or is gone since the last run.

  --state FILE      the copy, kept from run to run; one file per workspace
  --workspace UUID  the workspace to copy; by default the only one of the key
  --full            read the whole list now, not only once a day
  --help            show this text

  EVALGATE_KEY      the key; it needs the scope calls.read
  EVALGATE_URL      the address of the gateway; by default http://127.0.0.1:8080
`;

const HOUR_MS = 3_600_000;
/** A call is listed once its evaluation is completed, at the place of its `created_at`. This is how late that may be. */
const LOOK_BACK_MS = 24 * HOUR_MS;
/** How often the whole list is read: only that shows older calls that have changed or are gone. */
const FULL_EVERY_MS = 24 * HOUR_MS;
const MOST_CALLS_OF_A_PAGE = 100;
/** Calls that a page has in common with those before it. */
const OVERLAP = 10;
const MOST_TRIES = 6;
/** For a call that is missing from the list: if it can't be read now, the next whole run tries again. */
const MOST_TRIES_IF_GONE = 2;
const MOST_BREAKS = 20;
/** Errors of a connection that another try won't mend. */
const UNREACHABLE = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no host of that name',
  ERR_INVALID_URL: 'that is not an address',
};

/** The state that is kept from run to run. */
export function newState() {
  return { workspaceId: null, calls: {}, pages: {}, lastRunMs: null, lastFullMs: null };
}

/**
 * Brings `state` up to date and reports each change by `emit({ change: 'new' | 'changed' | 'gone', call })`. Without a
 * `workspaceId` it takes the only workspace of the key. `log` gets a line for each wait. If it throws, `state` holds what was
 * reported until then: keep it, or the next run reports that again. `now` and `sleep` are for tests.
 */
export async function syncCalls(options) {
  const { url, key, state, emit, isFull, log = () => {}, now = Date.now, sleep = wait } = options;
  const api = new Api({ url: url.replace(/\/+$/, ''), key, log, now, sleep });
  const workspaceId = await chooseWorkspace(api, options.workspaceId?.toLowerCase());
  // Calls of another workspace would look as if they were all missing.
  if (state.workspaceId !== null && state.workspaceId !== workspaceId) {
    throw new Error(`the state is of the workspace ${state.workspaceId}, not of ${workspaceId}`);
  }
  state.workspaceId = workspaceId;
  const startedMs = now();
  const { lastRunMs, lastFullMs } = state;
  const isWhole = isFull || lastRunMs === null || lastFullMs === null || startedMs - lastFullMs >= FULL_EVERY_MS;
  const copy = new Copy(state, emit);
  const until = isWhole ? null : new Date(lastRunMs - LOOK_BACK_MS).toISOString();
  const { seen, oldest } = await walk(api, copy, { workspaceId, until });
  await dropMissing(api, copy, seen, oldest);
  if (isWhole) copy.forgetOldPages();
  state.lastRunMs = startedMs;
  if (isWhole) state.lastFullMs = startedMs;
  return { isWhole, calls: seen.size, requests: api.requests };
}

/** Asks for the key first: this costs none of the quota, and finds at once what would be a 403 later. */
async function chooseWorkspace(api, wanted) {
  const { key } = (await api.read('/v2/key')).body;
  if (key === undefined) throw new Error('/v2/key was answered without a key: is this the address of evalgate?');
  const { id, scopes, workspace_ids: workspaces } = key;
  if (!scopes.includes('calls.read')) throw new Error(`the key ${id} lacks the scope calls.read`);
  if (wanted === undefined && workspaces.length !== 1) {
    const list = workspaces.join(', ');
    throw new Error(`the key ${id} may see ${workspaces.length} workspaces; name one with --workspace: ${list}`);
  }
  const workspaceId = wanted ?? workspaces[0];
  if (!workspaces.includes(workspaceId)) throw new Error(`the key ${id} may not see the workspace ${workspaceId}`);
  return workspaceId;
}

/**
 * Reads the list from its beginning to its end, or to what was created before `until`. Each page must have a call in
 * common with those before it: then there is none between them, however old either page is, and however many calls have
 * come since. `oldest` is how far it came: the `created_at` of the last call, or '' at the end of the list.
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
      // A walk that began again at the front and shares no call with the pages read before is not joined to them.
      if (isFirst && !body.calls.some(({ id }) => joined.has(id))) joined = new Set();
      for (const { id } of body.calls) joined.add(id);
      end = page.number * page.size;
      overlap = OVERLAP;
      if (end >= body.pagination.total_count) return { seen, oldest: '' };
      const oldest = body.calls.at(-1)?.created_at;
      if (until !== null && oldest !== undefined && oldest < until) return { seen, oldest };
    } else {
      // It is an older copy than the page before, or calls are gone. Step back, once the copy is no longer fresh.
      breaks += 1;
      if (breaks > MOST_BREAKS) throw new Error('the list changes faster than it can be read');
      overlap *= 2;
      await api.wait(Math.max(1000, freshForMs), `${path} has no call in common with the page before it`);
    }
  }
}

/** The page that reaches furthest among those that begin at that place of the list or before it. */
export function pageAt(place) {
  let best = { number: 1, size: MOST_CALLS_OF_A_PAGE };
  for (let size = 1; size <= MOST_CALLS_OF_A_PAGE; size += 1) {
    const number = Math.floor(place / size) + 1;
    if (number * size > best.number * best.size) best = { number, size };
  }
  return best;
}

/**
 * Calls that the part of the list from `oldest` on no longer has are gone or being evaluated again. Each is asked for by id
 * before it is dropped.
 */
async function dropMissing(api, copy, seen, oldest) {
  for (const id of copy.idsSince(oldest)) {
    if (!seen.has(id) && (await isGone(api, id))) copy.drop(id);
  }
}

/** A 500 is not gone: a record that can't be published is left out of the list, and its own address fails until it is mended. */
async function isGone(api, id) {
  try {
    return (await api.get(`/v2/calls/${id}`, { mostTries: MOST_TRIES_IF_GONE })).status === 404;
  } catch (error) {
    if (error.cause?.status >= 500) return false;
    throw error;
  }
}

/** The calls and the pages of the state. */
class Copy {
  #state;
  #emit;
  #used = new Set();

  constructor(state, emit) {
    this.#state = state;
    this.#emit = emit;
  }

  /** Those created after that time, in ISO 8601. */
  idsSince(time) {
    const { calls } = this.#state;
    return Object.keys(calls).filter((id) => calls[id].call.created_at > time);
  }

  /** A page that hasn't changed since the last run is a 304, and is taken from the state. */
  async page(api, path) {
    const { pages } = this.#state;
    const answer = await api.read(path, pages[path]?.etag);
    if (answer.status === 200) pages[path] = { etag: answer.etag, body: answer.body };
    this.#used.add(path);
    return { ...answer, body: pages[path].body };
  }

  /** Copies of different age come in any order: an older one never replaces a newer one. */
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

  async wait(ms, why) {
    this.#options.log(`waiting ${Math.ceil(ms / 1000)} s: ${why}`);
    await this.#options.sleep(ms);
  }

  /** As `get`, for an address that always exists. */
  async read(path, etag) {
    const answer = await this.get(path, { etag });
    if (answer.status === 404) throw new Error(`${path} was answered with 404: is this the address of evalgate?`);
    return answer;
  }

  /**
   * Returns a 200, 304 or 404. `asOfMs` is when the gateway had it from the store, `freshForMs` how long the same copy is
   * served. Throws an Error for any other answer: at once if no other try can help, else after the last one. Its
   * `cause.status` is that of the last answer, null if there was none.
   */
  async get(path, { etag, mostTries = MOST_TRIES } = {}) {
    for (let tries = 1; ; tries += 1) {
      const { status, headers, body, atMs, reason } = await this.#request(path, etag);
      if (reason === null) return { status, body, etag: headers.get('etag'), ...timesOf(headers, atMs) };
      const isLimited = status === 429;
      const isPassing = status === null || status >= 500;
      const why = `${path}: ${reason}`;
      if (!isLimited && (!isPassing || tries === mostTries)) throw new Error(why, { cause: { status } });
      const retryAfterMs = this.#retryAfterMs(headers?.get('retry-after') ?? null);
      if (retryAfterMs === null) await this.wait(1000 * 2 ** tries, why);
      else await this.wait(retryAfterMs, `${why} (Retry-After)`);
      if (isLimited) tries = 0;
    }
  }

  /** `reason` is null for an answer that can be used. */
  async #request(path, etag) {
    const { url, key, now } = this.#options;
    const sent = { authorization: `Bearer ${key}`, ...(etag === undefined ? {} : { 'if-none-match': etag }) };
    this.requests += 1;
    try {
      const response = await fetch(`${url}${path}`, { headers: sent });
      const { status, headers } = response;
      const atMs = now();
      // Read inside the try: a connection may break off in the middle of an answer.
      const text = await response.text();
      if (![200, 304, 404].includes(status)) return { status, headers, reason: `${status} ${text}`.trim() };
      const body = status === 200 ? parseJson(text) : null;
      if (body === undefined) return { status, headers, reason: '200 without JSON: is this the address of evalgate?' };
      return { status, headers, body, atMs, reason: null };
    } catch (error) {
      // fetch has the error of the connection as its cause.
      const cause = error.cause ?? error;
      const hopeless = UNREACHABLE[cause.code];
      if (hopeless !== undefined)
        throw new Error(`no connection to ${url}: ${hopeless} (${cause.code})`, { cause: error });
      return { status: null, headers: null, reason: cause.message || String(cause.code ?? error) };
    }
  }

  /** Exact in a 429 of evalgate: one request is admitted then, if nobody else uses the key. Proxies may send a date. */
  #retryAfterMs(value) {
    if (value === null) return null;
    const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - this.#options.now();
    return Number.isNaN(ms) ? null : Math.max(0, ms);
  }
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function timesOf(headers, atMs) {
  const ageSeconds = Number(headers.get('age') ?? 0);
  const maxAgeSeconds = Number(/max-age=(\d+)/.exec(headers.get('cache-control') ?? '')?.[1] ?? 0);
  return { asOfMs: atMs - ageSeconds * 1000, freshForMs: Math.max(0, maxAgeSeconds - ageSeconds) * 1000 };
}

/** A file that can't be used is named and left as it is. */
async function readState(file) {
  let text;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return newState();
    throw new Error(`${file} can't be read: ${error.message}`, { cause: error });
  }
  try {
    const state = JSON.parse(text);
    const missing = Object.keys(newState()).filter((name) => state?.[name] === undefined);
    if (missing.length > 0) throw new Error(`it has no ${missing.join(', ')}`);
    return state;
  } catch (error) {
    const message = `${file} is not a state of this program: ${error.message}. It was not changed; name another file.`;
    throw new Error(message, { cause: error });
  }
}

/** Written whole or not at all. */
async function writeState(file, state) {
  try {
    await writeFile(`${file}.new`, JSON.stringify(state));
    await rename(`${file}.new`, file);
  } catch (error) {
    throw new Error(`${file} can't be written: ${error.message}`, { cause: error });
  }
}

function print(change) {
  process.stdout.write(`${JSON.stringify(change)}\n`);
}

function printLog(line) {
  process.stderr.write(`${line}\n`);
}

async function main() {
  const { values } = parseArgs({
    options: {
      workspace: { type: 'string' },
      state: { type: 'string' },
      full: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const { workspace: workspaceId, state: file, full: isFull, help } = values;
  if (help) {
    process.stdout.write(HELP);
    return;
  }
  const { EVALGATE_URL: url = 'http://127.0.0.1:8080', EVALGATE_KEY: key } = process.env;
  if (key === undefined) throw new Error('EVALGATE_KEY is not set; --help shows how to run this');
  if (file === undefined) throw new Error('--state FILE is missing; --help shows how to run this');
  const state = await readState(file);
  // Written now too, so that a file that can't be written is found before the first change is printed.
  await writeState(file, state);
  let done;
  try {
    done = await syncCalls({ url, key, workspaceId, state, emit: print, isFull, log: printLog });
  } finally {
    // After a failure too: the changes that were printed must not be printed again.
    await writeState(file, state);
  }
  printLog(`${done.isWhole ? 'all' : 'recent'}: ${done.calls} calls in ${done.requests} requests`);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    await main();
  } catch (error) {
    printLog(error.message);
    process.exitCode = 1;
  }
}
