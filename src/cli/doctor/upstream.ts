/** Looks at the store: whether it answers, lets us in, keeps the contract and agrees on the time. */
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { evaluationSchema } from '../../domain/records.ts';
import { type Check, fail, ok, skipped, warn } from './check.ts';
import { checkClock } from './clock.ts';
import { probe, type ProbeAnswer, ProbeError, type ReachableStore } from './probe.ts';

/** A workspace that no store has: its list is empty, and that is answer enough. */
const NO_WORKSPACE = '00000000-0000-4000-8000-000000000000';
const NO_EVALUATION = 'evalgate-doctor-no-such-evaluation';
const LIST_LENGTH = 100;

const pageSchema = z.object({ items: z.array(z.unknown()), total: z.int().min(0) });
const errorSchema = z.object({ code: z.string(), message: z.string() });

/** `workspaceId`: whose records to look at; null to look at none. */
export async function checkUpstream(
  upstream: Config['upstream'],
  workspaceId: string | null,
): Promise<readonly Check[]> {
  const { url, token } = upstream;
  if (url === null) return [skipped('upstream', 'not configured: the bundled sample store is used')];
  const store: ReachableStore = { ...upstream, url, token };
  const path = `/internal/v1/evaluations?workspaceId=${workspaceId ?? NO_WORKSPACE}&state=COMPLETED&offset=0&limit=${LIST_LENGTH}`;
  try {
    const list = await probe(store, path);
    const access = checkAccess(list);
    const clock = checkClock(list);
    if (access.status === 'fail') return [access, clock];
    return [
      access,
      clock,
      checkList(list, workspaceId),
      await checkRevalidation(store, path, list),
      await checkAbsence(store),
    ];
  } catch (error) {
    if (!(error instanceof ProbeError)) throw error;
    return [
      fail(
        'upstream',
        `the store gives no whole answer: ${error.message}`,
        'Check UPSTREAM_URL, the network between, UPSTREAM_TIMEOUT and the store itself.',
      ),
    ];
  }
}

function checkAccess({ status, sentAtMs, answeredAtMs }: ProbeAnswer): Check {
  if (status === 200)
    return ok('upstream', `the store answers, in ${answeredAtMs - sentAtMs} ms, and accepts the token`);
  if (status === 401 || status === 403) {
    return fail(
      'upstream',
      `the store refuses the token (status ${status})`,
      'Set UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE to the token that the store expects.',
    );
  }
  if (status >= 300 && status < 400) {
    return fail(
      'upstream',
      `the store redirects (status ${status}), and redirects are never followed`,
      'Set UPSTREAM_URL to where it redirects to.',
    );
  }
  return fail(
    'upstream',
    `the store answers a list with status ${status}`,
    'Check that UPSTREAM_URL is the base address of the store, and the log of the store.',
  );
}

function checkList({ content, headers }: ProbeAnswer, workspaceId: string | null): Check {
  const page = pageSchema.safeParse(content);
  if (!page.success) {
    return fail(
      'contract',
      'a list of the store is not {"items": [...], "total": integer}',
      'Check that UPSTREAM_URL is the base address of the evaluation store.',
    );
  }
  const records = page.data.items.map((item) => evaluationSchema.safeParse(item));
  const foreign = records.filter(({ data }) => data !== undefined && data.workspaceId !== workspaceId?.toLowerCase());
  if (foreign.length > 0) {
    return fail(
      'contract',
      `a list of one workspace holds ${foreign.length} records of another`,
      'They are never served. Have the store put right.',
    );
  }
  const malformed = records.filter(({ success }) => !success).length;
  if (malformed > 0) {
    return warn(
      'contract',
      `${malformed} of ${records.length} records are malformed`,
      'They are left out of lists; the log of the gateway names them and the member that is wrong.',
    );
  }
  if (headers.get('etag') === null) {
    return warn(
      'contract',
      'a list of the store has no ETag',
      'It works, but every refresh costs the store a whole answer.',
    );
  }
  const looked =
    workspaceId === null
      ? 'its form is right; --workspace UUID looks at records too'
      : `${records.length} records are whole`;
  return ok('contract', `lists: ${looked}`);
}

async function checkRevalidation(store: ReachableStore, path: string, list: ProbeAnswer): Promise<Check> {
  const etag = list.headers.get('etag');
  if (etag === null) return skipped('contract', 'If-None-Match: there is no ETag to send');
  const { status } = await probe(store, path, { 'if-none-match': etag });
  if (status === 304) return ok('contract', 'If-None-Match: answered with 304');
  return warn(
    'contract',
    `If-None-Match: answered with ${status} in place of 304`,
    'It works, but every refresh costs the store a whole answer. A busy store may just have changed: try again.',
  );
}

async function checkAbsence(store: ReachableStore): Promise<Check> {
  const { status, content } = await probe(store, `/internal/v1/evaluations/${NO_EVALUATION}`);
  const code = errorSchema.safeParse(content).data?.code;
  if (status === 404 && code === 'NOT_FOUND') return ok('contract', 'what does not exist: answered with 404 NOT_FOUND');
  return fail(
    'contract',
    `what does not exist is answered with ${status}${code === undefined ? ' without a code' : ` ${JSON.stringify(code)}`} in place of 404 NOT_FOUND`,
    'Only that code counts as absence; everything else is served as a failure of the store. Have the store, or a proxy before it, put right.',
  );
}
