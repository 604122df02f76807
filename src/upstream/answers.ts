/** What a reply of the store means to the question that was asked. */
import { createBreather } from './breather.ts';
import { parseJson, UnreadableJsonError } from './json.ts';
import type { Question } from './question.ts';
import { retryAfterMsOf } from './retry-after.ts';
import { StoreError, type Absent, type StoreAnswer } from './store.ts';
import type { Reply } from './transport.ts';

/** Quoted or not, weak or strong, but nothing that couldn't be sent back in a header. */
const ETAG_PATTERN = /^[\u0020-\u007e]{1,256}$/;
/** Error codes of the interface's form; others are not repeated in messages. */
const CODE_PATTERN = /^[A-Z][A-Z_]{0,40}$/;

export interface Asked<T> {
  readonly question: Question<T>;
  /** Whether the store was asked to compare with a copy. */
  readonly isConditional: boolean;
  /** When the reply came, Unix milliseconds. */
  readonly nowMs: number;
}

/** Rejects with a StoreError of kind `refused`, `garbled` or `malformed`. */
export async function answerOf<T>(asked: Asked<T>, reply: Reply): Promise<StoreAnswer<T>> {
  if (reply.status === 200) {
    const record = await asked.question.read(await jsonOf(reply.body));
    return { kind: 'found', record, etag: etagOf(reply), bytes: reply.body.length };
  }
  if (reply.status === 304 && asked.isConditional) return { kind: 'not-modified' };
  const code = codeOf(reply.body);
  const absentCode = reply.status === 404 ? asked.question.absentCodes.find((known) => known === code) : undefined;
  if (absentCode !== undefined) return { kind: 'absent', code: absentCode } satisfies Absent;
  const said = code === null ? '' : ` ${code}`;
  throw new StoreError('refused', `the store answered ${asked.question.resource} with ${reply.status}${said}`, {
    status: reply.status,
    retryAfterMs: retryAfterMsOf(reply.headers['retry-after'], asked.nowMs),
  });
}

async function jsonOf(body: Buffer): Promise<unknown> {
  const breather = createBreather();
  try {
    const value = parseJson(body);
    await breather.pause();
    return value;
  } catch (error) {
    if (!(error instanceof UnreadableJsonError)) throw error;
    throw new StoreError('garbled', `the store's answer ${error.message}`, { status: 200 });
  }
}

function etagOf(reply: Reply): string | null {
  const { etag } = reply.headers;
  return etag !== undefined && ETAG_PATTERN.test(etag) ? etag : null;
}

/** The `code` of an error body; null where it has none of the known form. */
function codeOf(body: Buffer): string | null {
  try {
    const value = parseJson(body);
    if (typeof value !== 'object' || value === null || !('code' in value)) return null;
    return typeof value.code === 'string' && CODE_PATTERN.test(value.code) ? value.code : null;
  } catch {
    return null;
  }
}
