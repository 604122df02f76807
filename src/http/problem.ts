/** A failed request: what the consumer may read, what only the log may hold, and each surface's form for it. */
import { z } from 'zod';
import { FeedUnavailableError } from '../changes/feed.ts';
import { reportSchema } from '../domain/report.ts';
import { RegistryUnavailableError } from '../keys/key.ts';
import { StoreError } from '../upstream/store-error.ts';

export type Headers = Readonly<Record<string, string>>;

/**
 * Why a request failed, for programs: the value of `X-Error-Code`. Bodies are fixed by the API, and their texts are for
 * people (A4: every error has a code). `not_found` is that of a foreign record too (K7: it cannot be distinguished from none).
 */
export const ERROR_CODES = {
  parameter_invalid: { status: 400, meaning: 'A query parameter is unknown, repeated or breaks its rule.' },
  cursor_invalid: { status: 400, meaning: 'The cursor of `after` is none that the API has given.' },
  cursor_expired: {
    status: 400,
    meaning: 'Changes after the cursor of `after` are no longer kept, or it is of another key: read all calls once.',
  },
  address_too_long: { status: 400, meaning: 'Path and query are longer than 8192 bytes.' },
  request_unreadable: { status: 400, meaning: 'The request is not proper HTTP, too large or too slow.' },
  key_missing: { status: 401, meaning: 'The request has no API key.' },
  key_invalid: { status: 401, meaning: 'The API key was never issued, or is not sent as `Bearer`.' },
  too_many_failures: { status: 401, meaning: 'Too many requests from this address had no valid key.' },
  key_inactive: { status: 403, meaning: 'The key is deprecated, revoked or expired.' },
  address_forbidden: { status: 403, meaning: 'The key is bound to addresses, and the request comes from another.' },
  scope_missing: { status: 403, meaning: 'The key lacks the scope of the operation.' },
  workspace_forbidden: { status: 403, meaning: "The workspace asked for is not among the key's." },
  not_found: {
    status: 404,
    meaning: 'There is no such record among those that the key may see, or it is not ready yet.',
  },
  path_unknown: { status: 404, meaning: 'The API has no such path.' },
  method_not_allowed: { status: 405, meaning: 'The method is neither GET nor HEAD.' },
  rate_limited: { status: 429, meaning: 'A limit of the key is used up; `Retry-After` says for how long.' },
  store_unavailable: { status: 500, meaning: 'The store behind the gateway is down, slow or paused.' },
  record_malformed: { status: 500, meaning: 'The store answered with something that breaks its own contract.' },
  changes_unavailable: { status: 500, meaning: 'The feed of changes cannot be read at the moment.' },
  keys_unavailable: { status: 500, meaning: 'API keys cannot be checked at the moment.' },
  overloaded: {
    status: 500,
    meaning: 'The gateway is at its limit: of requests, of calls to the store, or of memory for answers.',
  },
  internal_error: { status: 500, meaning: 'A fault of the gateway.' },
} as const;
export type ErrorCode = keyof typeof ERROR_CODES;

/** Only the feed of changes answers with these. */
const FEED_CODES: readonly string[] = ['cursor_expired', 'changes_unavailable'] satisfies ErrorCode[];

/** The codes of an API with or without a feed of changes, for its reference. */
export function errorCodes(hasFeed: boolean): readonly (readonly [string, { status: number; meaning: string }])[] {
  return Object.entries(ERROR_CODES).filter(([code]) => hasFeed || !FEED_CODES.includes(code));
}

/** A text of an error that many responses have: its body is rendered once per form. */
export class ErrorText {
  readonly text: string;
  readonly #bodies: { [F in ErrorForm]?: Buffer } = {};

  constructor(text: string) {
    this.text = text;
  }

  body(form: ErrorForm): Buffer {
    return (this.#bodies[form] ??= Buffer.from(JSON.stringify(bodyOf(form, this.text))));
  }
}

interface ProblemDetails {
  readonly headers?: Headers;
  /** For operators only; without one the public text serves. */
  readonly reason?: string | undefined;
}

/** Why a request is not answered with what it asks for: a value, which costs less than what it refuses. */
export class Problem {
  readonly code: ErrorCode;
  readonly status: number;
  /** Shown to anyone who asks: no ids, no addresses, no causes. Null: the text of the route for its 403 or 404. */
  readonly text: ErrorText | null;
  readonly headers: Headers;
  readonly reason: string;

  constructor(code: ErrorCode, text: ErrorText | null, { headers = {}, reason }: ProblemDetails = {}) {
    const { status, meaning } = ERROR_CODES[code];
    this.code = code;
    this.status = status;
    this.text = text;
    this.headers = { 'Cache-Control': 'no-store', 'X-Error-Code': code, ...headers };
    this.reason = reason ?? text?.text ?? meaning;
  }
}

/** A route's 404: one text for none, for a foreign record, and for a part that is not ready (K7). */
export function notFound(reason?: string): Problem {
  return new Problem('not_found', null, { reason });
}

type ForbiddenCode = { [C in ErrorCode]: (typeof ERROR_CODES)[C]['status'] extends 403 ? C : never }[ErrorCode];

/** A route's 403: one text, whatever its reason (K7). */
export function forbidden(code: ForbiddenCode, reason: string): Problem {
  return new Problem(code, null, { reason: `forbidden: ${reason}` });
}

/** Ends a request's way: a middleware that refuses it calls this in place of `next()`. */
export function refuse(state: { problem: Problem | null }, problem: Problem): void {
  state.problem = problem;
}

/** The methods that every path of the API allows (A2: HEAD works wherever GET does). */
export const ALLOWED_METHODS = 'GET, HEAD';

const message = z.string().meta({ description: 'What went wrong, in plain words. Not meant for programs.' });

/** The error bodies of both surfaces (S3: 400 and 500 of v1's list also hold an empty `reports`). */
export const ERROR_SCHEMAS = {
  CallError: z
    .strictObject({ error: z.strictObject({ message }).meta({ id: 'CallErrorDetail' }) })
    .meta({ id: 'CallError' }),
  ReportError: z.strictObject({ error: message }).meta({ id: 'ReportError' }),
  ReportListError: z
    .strictObject({ reports: z.array(reportSchema).max(0).meta({ description: 'Always empty.' }), error: message })
    .meta({ id: 'ReportListError' }),
} as const;
type ErrorForm = keyof typeof ERROR_SCHEMAS;

const REPORT_LIST = /^\/v1\/workspaces\/[^/]*\/reports$/;

/** Goes by the path only, so that it also serves requests that never reach a route. */
export function errorFormOf(path: string, status: number): ErrorForm {
  if (surfaceOf(path) === 'v2') return 'CallError';
  return REPORT_LIST.test(path) && (status === 400 || status === 500) ? 'ReportListError' : 'ReportError';
}

/** The body of an error, in the form of the path's surface. */
export function errorBody(path: string, status: number, text: string): ReturnType<typeof bodyOf> {
  return bodyOf(errorFormOf(path, status), text);
}

function bodyOf(form: ErrorForm, text: string): z.output<(typeof ERROR_SCHEMAS)[ErrorForm]> {
  if (form === 'CallError') return { error: { message: text } };
  return form === 'ReportError' ? { error: text } : { reports: [], error: text };
}

/** The surface that a path belongs to, matched by a route or not. */
export function surfaceOf(path: string): 'v1' | 'v2' | 'other' {
  if (path === '/v1' || path.startsWith('/v1/')) return 'v1';
  if (path === '/v2' || path.startsWith('/v2/')) return 'v2';
  return 'other';
}

/** Used if nobody said how long the trouble lasts. */
const DEFAULT_RETRY_AFTER_SECONDS = 5;
/** No consumer is sent away for longer (S2: `Retry-After` is at most 60 s): trouble may end early, as a maintenance does. */
const MAX_RETRY_AFTER_SECONDS = 60;
const UNEXPECTED = new ErrorText('Something went wrong in the gateway.');
const KEYS_UNAVAILABLE = new ErrorText('API keys cannot be checked at the moment. Try again later.');

const CHANGES_UNAVAILABLE = new ErrorText('Changes cannot be read at the moment. Try again later.');

/** The texts of a route's 403 and 404. */
export type FixedTexts = Readonly<Record<403 | 404, ErrorText>>;

/** The rendered body of a problem. `path`: of the request. */
export function problemBody({ status, text }: Problem, path: string, texts: FixedTexts | undefined): Buffer {
  const fixed = status === 403 || status === 404 ? texts?.[status] : undefined;
  return (text ?? fixed ?? UNEXPECTED).body(errorFormOf(path, status));
}

/**
 * The problem that an error means, whatever was thrown: a 500 (S1: the statuses of each operation; S2: 500 is all trouble that
 * is not the consumer's fault). `Retry-After` says if it will pass.
 */
export function problemOf(error: unknown): Problem {
  if (error instanceof StoreError && error.kind !== 'internal') {
    const headers = error.isTransient ? retryAfter(error.retryAfterMs) : {};
    const transient = error.kind === 'overloaded' ? 'overloaded' : 'store_unavailable';
    const text = new ErrorText(error.publicMessage);
    return new Problem(error.isTransient ? transient : 'record_malformed', text, { headers });
  }
  if (error instanceof RegistryUnavailableError) {
    return new Problem('keys_unavailable', KEYS_UNAVAILABLE, { headers: retryAfter(null) });
  }
  if (error instanceof FeedUnavailableError) {
    return new Problem('changes_unavailable', CHANGES_UNAVAILABLE, { headers: retryAfter(null) });
  }
  return new Problem('internal_error', UNEXPECTED);
}

function retryAfter(delayMs: number | null): Headers {
  const seconds = delayMs === null ? DEFAULT_RETRY_AFTER_SECONDS : Math.max(1, Math.ceil(delayMs / 1000));
  return { 'Retry-After': String(Math.min(MAX_RETRY_AFTER_SECONDS, seconds)) };
}
