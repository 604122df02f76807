/** Checks of the store: whether it answers, accepts the token, keeps the contract and agrees on the time. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { evaluationSchema } from '../../domain/records.ts';
import { reasonOf } from '../admin-client.ts';
import { parseJson } from '../command.ts';
import { type Check, checkClock, checksNamed, clockChecks, readClock } from './check.ts';

const upstream = checksNamed('upstream');
const contract = checksNamed('contract');

/** A workspace that no store has: its empty list is enough to check the form of a list. */
const NO_WORKSPACE = '00000000-0000-4000-8000-000000000000';
const NO_EVALUATION = 'evalgate-doctor-no-such-evaluation';
const LIST_LENGTH = 100;
const BASE_ADDRESS = 'Check that UPSTREAM_URL is the base address of the store';
const COSTLY = 'It works, but every refresh costs the store a whole answer.';

const pageSchema = z.object({ items: z.array(z.unknown()), total: z.int().min(0) });
const errorSchema = z.object({ code: z.string(), message: z.string() });

/** `workspaceId`: the workspace whose records are checked; null to check none. Never rejects. */
export async function checkUpstream(
  settings: Config['upstream'],
  workspaceId: string | null,
): Promise<readonly Check[]> {
  const { url } = settings;
  if (url === null) {
    const message = 'only `evalgate serve --demo` starts, in front of the bundled sample store';
    return [upstream.skipped(`UPSTREAM_URL is not set: ${message}`)];
  }
  const get: Get = (path, headers = {}) => probe(`${url}/internal/v1${path}`, settings, headers);
  const path = `/evaluations?workspaceId=${workspaceId ?? NO_WORKSPACE}&state=COMPLETED&offset=0&limit=${LIST_LENGTH}`;
  try {
    const list = await get(path);
    const access = checkAccess(list);
    const basics = [access, checkStoreClock(list)];
    if (access.status === 'fail') return basics;
    return [...basics, checkList(list, workspaceId), await checkRevalidation(get, path, list), await checkAbsence(get)];
  } catch (error) {
    if (!(error instanceof ProbeError)) throw error;
    const advice = 'Check UPSTREAM_URL, the network between, UPSTREAM_TIMEOUT and the store itself.';
    return [upstream.fail(`the store gives no whole answer: ${error.message}`, advice)];
  }
}

function checkAccess({ status, sentAtMs, answeredAtMs }: Reply): Check {
  if (status === 200) return upstream.ok(`the store answers, in ${answeredAtMs - sentAtMs} ms, and accepts the token`);
  if (status === 401 || status === 403) {
    const advice = 'Set UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE to the token that the store expects.';
    return upstream.fail(`the store refuses the token (status ${status})`, advice);
  }
  if (status >= 300 && status < 400) {
    const message = `the store redirects (status ${status}), and redirects are never followed`;
    return upstream.fail(message, 'Set UPSTREAM_URL to where it redirects to.');
  }
  return upstream.fail(`the store answers a list with status ${status}`, `${BASE_ADDRESS}, and the log of the store.`);
}

function checkList({ content, headers }: Reply, workspaceId: string | null): Check {
  const page = pageSchema.safeParse(content);
  if (!page.success) {
    return contract.fail('a list of the store is not {"items": [...], "total": integer}', `${BASE_ADDRESS}.`);
  }
  const records = page.data.items.map((item) => evaluationSchema.safeParse(item));
  const foreign = records.filter(({ data }) => data !== undefined && data.workspaceId !== workspaceId?.toLowerCase());
  if (foreign.length > 0) {
    const message = `a list of one workspace holds ${foreign.length} records of another`;
    return contract.fail(message, 'They are never served. Have the store corrected.');
  }
  const malformed = records.filter(({ success }) => !success).length;
  if (malformed > 0) {
    const advice = 'They are left out of lists; the log of the gateway names them and the member that is wrong.';
    return contract.warn(`${malformed} of ${records.length} records are malformed`, advice);
  }
  if (!headers.has('etag')) return contract.warn('a list of the store has no ETag', COSTLY);
  return contract.ok(
    workspaceId === null
      ? 'lists: valid form; --workspace UUID checks records too'
      : `lists: ${records.length} records are whole`,
  );
}

async function checkRevalidation(get: Get, path: string, { headers }: Reply): Promise<Check> {
  const etag = headers.get('etag');
  if (etag === null) return contract.skipped('If-None-Match: there is no ETag to send');
  const { status } = await get(path, { 'if-none-match': etag });
  if (status === 304) return contract.ok('If-None-Match: answered with 304');
  const advice = `${COSTLY} A busy store may just have changed: try again.`;
  return contract.warn(`If-None-Match: answered with ${status} instead of 304`, advice);
}

async function checkAbsence(get: Get): Promise<Check> {
  const { status, content } = await get(`/evaluations/${NO_EVALUATION}`);
  const code = errorSchema.safeParse(content).data?.code;
  if (status === 404 && code === 'NOT_FOUND') return contract.ok('a missing record: answered with 404 NOT_FOUND');
  const shown = code === undefined ? 'without a code' : JSON.stringify(code);
  return contract.fail(
    `a missing record: answered with ${status} ${shown} instead of 404 NOT_FOUND`,
    'Only that code counts as absence; everything else is served as a failure of the store. Have the store, or a proxy before it, corrected.',
  );
}

/** The Date header is cut to whole seconds (RFC 9110, 6.6.1): on average it lags by half of one. */
const DATE_LAG_MS = 500;

/** Key expiry and the ages of answers go by this machine's clock. */
function checkStoreClock({ headers, sentAtMs, answeredAtMs }: Reply): Check {
  const theirsMs = Date.parse(headers.get('date') ?? '') + DATE_LAG_MS;
  if (Number.isNaN(theirsMs)) return clockChecks.skipped('the store sends no Date header to compare with');
  return checkClock(readClock(theirsMs, sentAtMs, answeredAtMs), 'fail', {
    toleranceMs: 5000,
    within: '5 seconds',
    decimals: 0,
    other: "the store's",
    consequence: 'A wrong clock ends keys too soon or too late.',
  });
}

/** GETs a path of the interface. Rejects with ProbeError. */
type Get = (path: string, headers?: Readonly<Record<string, string>>) => Promise<Reply>;

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body; undefined if it is no JSON. */
  readonly content: unknown;
  /** When the request was sent and when its headers arrived, Unix milliseconds. */
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

/** The store gave no whole response; the message says why, in a few words. */
class ProbeError extends Error {}

/** GETs as the gateway does. Rejects with ProbeError if there is no whole response. */
async function probe(
  url: string,
  { token, timeoutMs, maxResponseBytes }: Config['upstream'],
  headers: Readonly<Record<string, string>>,
): Promise<Reply> {
  const sentAtMs = Date.now();
  const authorization: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  try {
    const response = await fetch(url, {
      headers: { 'x-request-id': randomUUID(), accept: 'application/json', ...authorization, ...headers },
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const answeredAtMs = Date.now();
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    const body: AsyncIterable<Uint8Array> | null = response.body;
    for await (const chunk of body ?? []) {
      bytes += chunk.length;
      if (bytes > maxResponseBytes) throw new ProbeError(`the answer is larger than ${maxResponseBytes} bytes`);
      chunks.push(chunk);
    }
    const content = parseJson(Buffer.concat(chunks).toString('utf8'));
    return { status: response.status, headers: response.headers, content, sentAtMs, answeredAtMs };
  } catch (error) {
    throw error instanceof ProbeError ? error : new ProbeError(reasonOf(error));
  }
}
