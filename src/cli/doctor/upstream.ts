/** Checks of the store: whether it answers, accepts the token, keeps the contract and agrees on the time. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { evaluationSchema } from '../../domain/records.ts';
import { reasonOf } from '../admin-client.ts';
import { parseJson } from '../command.ts';
import { type Check, checksNamed, CLOCK_ADVICE, clockDifference, readClock } from './check.ts';

const upstream = checksNamed('upstream');
const contract = checksNamed('contract');
const clock = checksNamed('clock');

/** A workspace that no store has: its empty list is enough to check the form of a list. */
const NO_WORKSPACE = '00000000-0000-4000-8000-000000000000';
const NO_EVALUATION = 'evalgate-doctor-no-such-evaluation';
const LIST_LENGTH = 100;

const pageSchema = z.object({ items: z.array(z.unknown()), total: z.int().min(0) });
const errorSchema = z.object({ code: z.string(), message: z.string() });

/** `workspaceId`: the workspace whose records are checked; null to check none. Never rejects. */
export async function checkUpstream(
  settings: Config['upstream'],
  workspaceId: string | null,
): Promise<readonly Check[]> {
  const { url } = settings;
  if (url === null) return [upstream.skipped('not configured: the bundled sample store is used')];
  const store: ReachableStore = { ...settings, url };
  const path = `/internal/v1/evaluations?workspaceId=${workspaceId ?? NO_WORKSPACE}&state=COMPLETED&offset=0&limit=${LIST_LENGTH}`;
  try {
    const list = await probe(store, path);
    const access = checkAccess(list);
    if (access.status === 'fail') return [access, checkClock(list)];
    return [
      access,
      checkClock(list),
      checkList(list, workspaceId),
      await checkRevalidation(store, path, list),
      await checkAbsence(store),
    ];
  } catch (error) {
    if (!(error instanceof ProbeError)) throw error;
    return [
      upstream.fail(
        `the store gives no whole answer: ${error.message}`,
        'Check UPSTREAM_URL, the network between, UPSTREAM_TIMEOUT and the store itself.',
      ),
    ];
  }
}

function checkAccess({ status, sentAtMs, answeredAtMs }: ProbeAnswer): Check {
  if (status === 200) return upstream.ok(`the store answers, in ${answeredAtMs - sentAtMs} ms, and accepts the token`);
  if (status === 401 || status === 403) {
    return upstream.fail(
      `the store refuses the token (status ${status})`,
      'Set UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE to the token that the store expects.',
    );
  }
  if (status >= 300 && status < 400) {
    return upstream.fail(
      `the store redirects (status ${status}), and redirects are never followed`,
      'Set UPSTREAM_URL to where it redirects to.',
    );
  }
  return upstream.fail(
    `the store answers a list with status ${status}`,
    'Check that UPSTREAM_URL is the base address of the store, and the log of the store.',
  );
}

function checkList({ content, headers }: ProbeAnswer, workspaceId: string | null): Check {
  const page = pageSchema.safeParse(content);
  if (!page.success) {
    return contract.fail(
      'a list of the store is not {"items": [...], "total": integer}',
      'Check that UPSTREAM_URL is the base address of the evaluation store.',
    );
  }
  const records = page.data.items.map((item) => evaluationSchema.safeParse(item));
  const foreign = records.filter(({ data }) => data !== undefined && data.workspaceId !== workspaceId?.toLowerCase());
  if (foreign.length > 0) {
    return contract.fail(
      `a list of one workspace holds ${foreign.length} records of another`,
      'They are never served. Have the store put right.',
    );
  }
  const malformed = records.filter(({ success }) => !success).length;
  if (malformed > 0) {
    return contract.warn(
      `${malformed} of ${records.length} records are malformed`,
      'They are left out of lists; the log of the gateway names them and the member that is wrong.',
    );
  }
  if (headers.get('etag') === null) {
    return contract.warn(
      'a list of the store has no ETag',
      'It works, but every refresh costs the store a whole answer.',
    );
  }
  const looked =
    workspaceId === null
      ? 'its form is right; --workspace UUID looks at records too'
      : `${records.length} records are whole`;
  return contract.ok(`lists: ${looked}`);
}

async function checkRevalidation(store: ReachableStore, path: string, list: ProbeAnswer): Promise<Check> {
  const etag = list.headers.get('etag');
  if (etag === null) return contract.skipped('If-None-Match: there is no ETag to send');
  const { status } = await probe(store, path, { 'if-none-match': etag });
  if (status === 304) return contract.ok('If-None-Match: answered with 304');
  return contract.warn(
    `If-None-Match: answered with ${status} in place of 304`,
    'It works, but every refresh costs the store a whole answer. A busy store may just have changed: try again.',
  );
}

async function checkAbsence(store: ReachableStore): Promise<Check> {
  const { status, content } = await probe(store, `/internal/v1/evaluations/${NO_EVALUATION}`);
  const code = errorSchema.safeParse(content).data?.code;
  if (status === 404 && code === 'NOT_FOUND') return contract.ok('what does not exist: answered with 404 NOT_FOUND');
  return contract.fail(
    `what does not exist is answered with ${status}${code === undefined ? ' without a code' : ` ${JSON.stringify(code)}`} in place of 404 NOT_FOUND`,
    'Only that code counts as absence; everything else is served as a failure of the store. Have the store, or a proxy before it, put right.',
  );
}

/** The Date header is cut to whole seconds (RFC 9110, 6.6.1): on average it lags by half of one. */
const DATE_LAG_MS = 500;

/** Key expiry and the ages of answers go by this machine's clock. */
function checkClock({ headers, sentAtMs, answeredAtMs }: ProbeAnswer): Check {
  const theirsMs = Date.parse(headers.get('date') ?? '') + DATE_LAG_MS;
  if (Number.isNaN(theirsMs)) return clock.skipped('the store sends no Date header to compare with');
  const reading = readClock(theirsMs, sentAtMs, answeredAtMs);
  const difference = clockDifference(reading, { toleranceMs: 5000, decimals: 0, other: "the store's" });
  if (difference === null) return clock.ok("agrees with the store's to within some seconds");
  return clock.fail(difference, `${CLOCK_ADVICE} A wrong clock ends keys too soon or too late.`);
}

interface ProbeAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body; undefined if it is no JSON. */
  readonly content: unknown;
  /** When the request was sent and when its headers arrived, Unix milliseconds. */
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

interface ReachableStore extends Pick<Config['upstream'], 'timeoutMs' | 'maxResponseBytes' | 'token'> {
  readonly url: string;
}

/** The store gave no whole response; the message says why, in a few words. */
class ProbeError extends Error {
  override readonly name = 'ProbeError';
}

/** GETs a path of the store as the gateway does. Throws ProbeError if there is no whole response. */
async function probe(store: ReachableStore, path: string, headers: Record<string, string> = {}): Promise<ProbeAnswer> {
  const { url, token, timeoutMs, maxResponseBytes } = store;
  const sentAtMs = Date.now();
  try {
    const response = await fetch(url + path, {
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        'x-request-id': randomUUID(),
        accept: 'application/json',
        ...headers,
      },
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
