/**
 * The public API as a consumer reads it: one request after the other may fail, be limited or be told to wait, and is then
 * tried again as the answer says. `Retry-After` of a 429 is exact; a refused request costs nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { CliError, parseJson } from '../command.ts';

/** After failures without `Retry-After`: twice as long each time, at most a minute. */
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 60_000;
/** Some ten minutes. */
const MAX_TRIES = 16;

const errorSchema = z.object({ error: z.object({ message: z.string() }) });
const nextLink = /<([^>]*)>; rel="next"/;
const OLD = /;\s*detail=changed\b/;

export interface Found {
  readonly kind: 'found';
  readonly body: unknown;
  /** The address of the next page; null on the last one. */
  readonly next: string | null;
  /** Whether it is known to be from before a change, which the store could not be asked about. */
  readonly isOld: boolean;
}

/**
 * `absent`: there is none. `refused`: a 400 whose code the caller knows what to do about. `unreadable`: the store's record is
 * damaged.
 */
export type Reply =
  | Found
  | { readonly kind: 'absent' | 'unreadable' }
  | { readonly kind: 'refused'; readonly code: string };

export interface ApiOptions {
  /** Without /v2 and without a slash at its end. */
  readonly url: string;
  readonly key: string;
  /** Ends all waits. */
  readonly signal: AbortSignal;
  readonly onWait: (reason: string, delayMs: number) => void;
}

export class ConsumerApi {
  /** How many requests the key may make in a minute and in an hour, and has left in the hour; null before the first answer. */
  limits: { readonly perMinute: number; readonly perHour: number; readonly leftInHour: number } | null = null;
  readonly #options: ApiOptions;
  #notBeforeMs = 0;
  #hasAnswered = false;

  constructor(options: ApiOptions) {
    this.#options = options;
  }

  /**
   * `path` begins with `/v2`, or is the address of a link. `isNewNeeded`: an old answer is none. Rejects with a CliError for what no
   * other try can mend.
   */
  async get(path: string, isNewNeeded = false): Promise<Reply> {
    const { url, signal, onWait } = this.#options;
    for (let tries = 0; ;) {
      await this.#untilAllowed();
      const answer = await this.#ask(new URL(path, url));
      const isUnfit = isNewNeeded && 'kind' in answer && answer.kind === 'found' && answer.isOld;
      const outcome = isUnfit ? tooOld(path) : answer;
      if ('kind' in outcome) return outcome;
      // A limit passes: others who use the key may be quicker any number of times.
      if (!outcome.isForAll) tries += 1;
      if (tries === MAX_TRIES) throw new CliError(`${outcome.reason}. It was tried ${tries} times; try again later.`);
      const delayMs = outcome.delayMs ?? Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (tries - 1));
      onWait(outcome.reason, delayMs);
      if (outcome.isForAll) this.#notBeforeMs = Math.max(this.#notBeforeMs, Date.now() + delayMs);
      else await sleep(delayMs, null, { signal });
    }
  }

  async #untilAllowed(): Promise<void> {
    for (let leftMs = this.#notBeforeMs - Date.now(); leftMs > 0; leftMs = this.#notBeforeMs - Date.now()) {
      await sleep(leftMs, null, { signal: this.#options.signal });
    }
  }

  async #ask(address: URL): Promise<Reply | Retry> {
    const { key, signal } = this.#options;
    let response: Response;
    let text: string;
    try {
      response = await fetch(address, { headers: { authorization: `Bearer ${key}` }, signal, redirect: 'error' });
      text = await response.text();
    } catch (error) {
      signal.throwIfAborted();
      const reason = `${address.origin} cannot be reached (${causeOf(error)})`;
      if (!this.#hasAnswered) throw new CliError(`${reason}. Check --url, and whether the gateway runs.`);
      return { reason, delayMs: null, isForAll: false };
    }
    const reply = replyOf(address, response, text);
    // A proxy answers as it likes while there is no gateway behind it.
    const isForeign = 'isForeign' in reply && reply.isForeign;
    if (isForeign && !this.#hasAnswered) {
      throw new CliError(`${reply.reason} Is --url the address of an evalgate gateway?`);
    }
    this.#hasAnswered ||= !isForeign;
    this.#noteLimits(response.headers);
    return reply;
  }

  #noteLimits(headers: Headers): void {
    const [perMinute, perHour, leftInHour] = ['Minute-Limit', 'Hour-Limit', 'Hour-Remaining'].map((name) =>
      Number(headers.get(`X-RateLimit-${name}`) ?? Number.NaN),
    );
    if (perMinute === undefined || perHour === undefined || leftInHour === undefined || Number.isNaN(perMinute)) return;
    this.limits = { perMinute, perHour, leftInHour };
  }
}

interface Retry {
  readonly reason: string;
  /** Null if the answer does not say. */
  readonly delayMs: number | null;
  /** Whether every request has to wait: the key's limit is used up, for as long as the answer says. */
  readonly isForAll: boolean;
  /** Whether something else than a gateway has answered: its 404 has a code, and its 200 is JSON. */
  readonly isForeign?: boolean;
}

function tooOld(path: string): Retry {
  return {
    reason: `${path} is from before a change that the store could not be asked about`,
    delayMs: null,
    isForAll: false,
  };
}

function replyOf(address: URL, { status, headers }: Response, text: string): Reply | Retry {
  const code = headers.get('X-Error-Code');
  const said = `${address.pathname} answered ${status}: ${messageOf(text)}`;
  const body = status === 200 ? parseJson(text) : undefined;
  if (body !== undefined) {
    const isOld = OLD.test(headers.get('Cache-Status') ?? '');
    return { kind: 'found', body, next: nextOf(headers, address), isOld };
  }
  if (code === 'not_found') return { kind: 'absent' };
  if (code === 'path_unknown' || code?.startsWith('cursor_') === true) return { kind: 'refused', code };
  if (code === 'record_malformed') return { kind: 'unreadable' };
  // A proxy's page says nothing about a record.
  const isForeign = code === null && (status === 200 || status === 404);
  if (!isForeign && status !== 429 && status < 500)
    throw new CliError(`${said} Check the key and its scopes (GET /v2/key shows them).`);
  const seconds = Number(headers.get('Retry-After') ?? Number.NaN);
  const delayMs = Number.isNaN(seconds) ? null : seconds * 1000;
  return { reason: said, delayMs, isForAll: status === 429 && delayMs !== null, isForeign };
}

function nextOf(headers: Headers, address: URL): string | null {
  const [, link] = nextLink.exec(headers.get('Link') ?? '') ?? [];
  return link === undefined ? null : new URL(link, address).href;
}

function messageOf(text: string): string {
  try {
    return errorSchema.parse(JSON.parse(text)).error.message;
  } catch {
    return 'with a body that is not of this API.';
  }
}

function causeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? cause.message : String(cause);
}
