/** Checks of the store: whether it answers, accepts the token, agrees on the time, and keeps the contract. */
import { randomUUID } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { StoreError } from '../../upstream/store-error.ts';
import { reasonOf } from '../admin-client.ts';
import { type DirectResponse, directFetch } from '../direct-fetch.ts';
import { type Check, checkClock, checksNamed, clockChecks, type Finding, grouped, readClock } from './check.ts';
import { checkLists, NO_WORKSPACE } from './store-lists.ts';
import { StoreReader } from './store-reader.ts';
import { adviceFor, checkAbsences, checkRecords, isTrouble, isUnanswered, TROUBLE } from './store-records.ts';

const upstream = checksNamed('upstream');
const contract = checksNamed('contract');

const ROOT = '/internal/v1';
const FIRST_LIST = `${ROOT}/evaluations?workspaceId=${NO_WORKSPACE}&state=COMPLETED&offset=0&limit=1`;
const BASE_ADDRESS = 'Check that UPSTREAM_URL is the base address of the store';
const NO_ANSWER = 'Check UPSTREAM_URL, the network between, UPSTREAM_TIMEOUT and the store itself.';

/** `workspaceId`: the workspace whose records are checked; null to check none. Each check comes as it ends. Never rejects. */
export async function* checkUpstream(
  { upstream: settings, objectives }: Pick<Config, 'upstream' | 'objectives'>,
  workspaceId: string | null,
): AsyncGenerator<Check> {
  const { url, token } = settings;
  if (url === null) {
    const message = 'only `evalgate serve --demo` starts, in front of the bundled sample store';
    yield upstream.skipped(`UPSTREAM_URL is not set: ${message}`);
    return;
  }
  try {
    const list = await probe(url + FIRST_LIST, settings, token);
    const access = await checkAccess(list, url, settings);
    yield access;
    yield checkStoreClock(list);
    if (access.status === 'fail') return;
    if (token !== null) yield checkToken(await probe(url + FIRST_LIST, settings, null));
    const reader = new StoreReader({ ...settings, url });
    yield* checkContract(reader, { workspaceId, isList: /"(?:items|total)"/.test(list.text) });
    yield* reader.speedFindings(objectives.missP99Ms);
  } catch (error) {
    if (!(error instanceof ProbeError)) throw error;
    const advice = (await otherScheme(url, settings)) ?? NO_ANSWER;
    yield upstream.fail(`the store at ${placeOf(url)} gives no whole answer: ${error.message}`, advice);
  }
}

/**
 * `isList`: whether `UPSTREAM_URL` is right, since the probe got a list. Findings that may have a cause in common come last,
 * one per cause. Never rejects.
 */
async function* checkContract(
  reader: StoreReader,
  { workspaceId, isList }: { workspaceId: string | null; isList: boolean },
): AsyncGenerator<Check> {
  const { read } = reader;
  const toGroup: Finding[] = [];
  try {
    const lists = await checkLists(read, workspaceId?.toLowerCase() ?? null);
    const parts = [Promise.resolve(lists.findings), ...checkRecords(read, lists.records), checkAbsences(read)];
    // They go on together. One that fails is reported when it is its turn.
    for (const part of parts) part.catch(() => undefined);
    for (const part of parts) {
      const findings = await part;
      yield* grouped(findings.filter(({ seen }) => seen === undefined));
      toGroup.push(...findings.filter(({ seen }) => seen !== undefined));
    }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const advice = isList ? adviceFor(error) : `${BASE_ADDRESS}; docs/store-interface.md has its answers.`;
    toGroup.push(contract.fail(error.message, isUnanswered(error) ? NO_ANSWER : advice));
  } finally {
    reader.close();
  }
  yield* grouped([...toGroup, ...reader.etagFindings()]);
}

async function checkAccess(reply: Reply, url: string, settings: Config['upstream']): Promise<Check> {
  const { status, header, text, sentAtMs, answeredAtMs } = reply;
  if (status === 200 && /^\s*</.test(text)) {
    return upstream.fail(
      'the store answers a list with a page of HTML',
      `${BASE_ADDRESS}, and that no proxy answers for it.`,
    );
  }
  if (status === 200) return upstream.ok(`the store answers, in ${answeredAtMs - sentAtMs} ms, and accepts the token`);
  if (status === 401 || status === 403) {
    const advice = 'Set UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE to the token that the store expects.';
    return upstream.fail(`the store refuses the token (status ${status})`, advice);
  }
  if (status >= 300 && status < 400) {
    const place = header('location');
    const message = `the store redirects (status ${status})${place === null ? '' : ` to ${place}`}, and redirects are never followed`;
    return upstream.fail(message, 'Set UPSTREAM_URL to where it redirects to.');
  }
  const message = `the store answers a list with status ${status}`;
  if (new URL(url).pathname.includes(ROOT)) {
    return upstream.fail(message, `UPSTREAM_URL holds ${ROOT}, which the gateway adds itself: leave it out.`);
  }
  if (isTrouble(status)) return upstream.fail(message, TROUBLE);
  if (status === 404) return upstream.fail(message, `${BASE_ADDRESS}: the gateway asks for ${url}${ROOT}/evaluations.`);
  // A server of TLS answers a plain request with 400.
  const scheme = status === 400 ? await otherScheme(url, settings) : null;
  return upstream.fail(message, scheme ?? `${BASE_ADDRESS}, and the log of the store.`);
}

/** Host and port. */
function placeOf(url: string): string {
  const { protocol, hostname, port } = new URL(url);
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}

/** `reply`: to a request without a token. */
function checkToken({ status }: Reply): Check {
  if (status === 401 || status === 403) return upstream.ok(`without the token it refuses (status ${status})`);
  if (status !== 200) {
    return upstream.skipped(
      `without the token it answers with status ${status}: whether it checks the token is unknown`,
    );
  }
  const advice = 'It works, but everybody who reaches the store can read it. Have the store check UPSTREAM_TOKEN.';
  return upstream.warn(`without the token the store answers with status ${status} instead of 401`, advice);
}

/** Advice if the store answers at the same address under the other scheme; null if it does not. No token is sent there. */
async function otherScheme(url: string, settings: Config['upstream']): Promise<string | null> {
  const [scheme, other] = url.startsWith('https:') ? ['https:', 'http:'] : ['http:', 'https:'];
  try {
    await probe(url.replace(scheme, other) + FIRST_LIST, settings, null);
  } catch (error) {
    // A certificate that is not trusted shows that TLS is spoken.
    if (!(error instanceof ProbeError) || !/CERT|SIGNED|VERIFY|ISSUER/.test(error.message)) return null;
  }
  return `It answers at the same address with ${other}//: correct UPSTREAM_URL, which begins with ${scheme}//.`;
}

/** The Date header is cut to whole seconds (RFC 9110, 6.6.1): on average it lags by half of one. */
const DATE_LAG_MS = 500;

/** Key expiry and the ages of answers go by this machine's clock. */
function checkStoreClock({ header, sentAtMs, answeredAtMs }: Reply): Check {
  const theirsMs = Date.parse(header('date') ?? '') + DATE_LAG_MS;
  if (Number.isNaN(theirsMs)) return clockChecks.skipped('the store sends no Date header to compare with');
  return checkClock(readClock(theirsMs, sentAtMs, answeredAtMs), 'fail', {
    toleranceMs: 5000,
    within: '5 seconds',
    decimals: 0,
    other: "the store's",
    consequence: 'A wrong clock ends keys too soon or too late.',
  });
}

interface Reply {
  readonly status: number;
  readonly header: DirectResponse['header'];
  readonly text: string;
  /** When the request was sent and when its headers arrived, Unix milliseconds. */
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

/** The store gave no whole response; the message says why, in a few words. */
class ProbeError extends Error {}

/** GETs an address. Rejects with ProbeError if there is no whole response. */
async function probe(
  url: string,
  { timeoutMs, maxResponseBytes }: Config['upstream'],
  token: string | null,
): Promise<Reply> {
  const sentAtMs = Date.now();
  const authorization: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  try {
    const response = await directFetch(url, {
      headers: { 'x-request-id': randomUUID(), accept: 'application/json', ...authorization },
      signal: AbortSignal.timeout(timeoutMs),
    });
    const answeredAtMs = Date.now();
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of response.body) {
      bytes += chunk.length;
      if (bytes > maxResponseBytes) throw new ProbeError(`the answer is larger than ${maxResponseBytes} bytes`);
      chunks.push(chunk);
    }
    const text = Buffer.concat(chunks).toString('utf8');
    return { status: response.status, header: response.header, text, sentAtMs, answeredAtMs };
  } catch (error) {
    throw error instanceof ProbeError ? error : new ProbeError(reasonOf(error));
  }
}
