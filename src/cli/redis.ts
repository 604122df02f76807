/** Opens a Redis for one command: it answers within seconds, or the command ends with what to do about it. */
import {
  describeAddress,
  parseRedisAddress,
  RedisAddressError,
  type RedisAddress as Parsed,
} from '../redis/address.ts';
import { RedisLink, type RedisRole, replyCode } from '../redis/connection.ts';
import { askMode, askSentinels } from './redis-nodes.ts';
import { CliError } from './errors.ts';

/** Somebody waits at a terminal: longer than a request of the gateway may wait, and not so long as to seem stuck. */
const ANSWER_WITHIN_MS = 5000;

export interface RedisAddress {
  readonly role: RedisRole;
  readonly url: string;
}

/** Redis can't be used. `message` says why, `advice` what to do; neither holds a password. */
export class RedisAccessError extends CliError {
  readonly finding: string;
  readonly advice: string;

  constructor(setting: string, finding: string, advice: string) {
    super(`${setting}: ${finding}. ${advice}`);
    this.finding = finding;
    this.advice = advice;
  }
}

export function settingOf(role: RedisRole): string {
  return role === 'state' ? 'REDIS_URL' : 'REDIS_CACHE_URL';
}

/** No answer came in the time that a command waits. */
class NoAnswerError extends Error {}

/** There is no database of that number; a gateway would use the first one in its place, unnoticed. */
class NoDatabaseError extends Error {}

/** A link that is up. The caller closes it. Rejects with RedisAccessError. */
export async function openAnsweringRedis({ role, url }: RedisAddress): Promise<RedisLink> {
  const setting = settingOf(role);
  const fail = (finding: string, advice: string): RedisAccessError => new RedisAccessError(setting, finding, advice);
  const { address, link } = opened({ role, url }, fail);
  try {
    await answers(link);
    await selectDatabase(link);
    return link;
  } catch (error) {
    await link.close();
    const { reason, advice } = await explain(error, setting, address);
    throw fail(`${describeAddress(address)} can't be used (${reason})`, advice);
  }
}

function opened(
  { role, url }: RedisAddress,
  fail: (finding: string, advice: string) => RedisAccessError,
): { readonly address: Parsed; readonly link: RedisLink } {
  try {
    const address = parseRedisAddress(url);
    return { address, link: new RedisLink({ url, role, timeoutMs: ANSWER_WITHIN_MS }) };
  } catch (error) {
    if (!(error instanceof RedisAddressError)) throw error;
    throw fail(error.message, `Set ${settingOf(role)} to an address that evalgate can use: see docs/redis.md.`);
  }
}

/** Rejects with the first failure to connect: a command has no time to see whether Redis comes back. */
async function answers(link: RedisLink): Promise<void> {
  if (link.isUp()) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const late = (): void => reject(new NoAnswerError(`no answer within ${ANSWER_WITHIN_MS / 1000} s`));
  const timer = setTimeout(late, ANSWER_WITHIN_MS);
  const ends = [link.onUp(resolve), link.onDown(reject)];
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    for (const end of ends) end();
  }
}

async function selectDatabase({ client, db }: RedisLink): Promise<void> {
  if (db === 0) return;
  try {
    await client.select(db);
  } catch (error) {
    throw replyCode(error) === 'ERR' ? new NoDatabaseError(redisReason(error)) : error;
  }
}

/** Why Redis, or the way there, refuses: Redis's own words or the code of the system's error. */
export function redisReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}

interface Explanation {
  readonly reason: string;
  readonly advice: string;
}

async function explain(error: unknown, setting: string, address: Parsed): Promise<Explanation> {
  const reason = redisReason(error);
  if (error instanceof NoDatabaseError) {
    return { reason, advice: `Give another database number in ${setting}, or raise "databases" there.` };
  }
  if (address.kind === 'sentinel') {
    const failure = await explainSentinels(setting, address);
    if (failure !== null) return failure;
  }
  const code = replyCode(error);
  if (code === 'NOAUTH' || code === 'WRONGPASS' || code === 'NOPERM') {
    const form = `${schemeOf(address.kind)}://user:password@host:port`;
    return { reason, advice: `Give a user and password that it takes in ${setting}: ${form}.` };
  }
  if (/CERT|SIGNATURE/.test(errorCode(error))) {
    return { reason, advice: certificateAdvice(reason, setting, (address.tls?.caFile ?? null) !== null) };
  }
  if (address.kind === 'cluster') {
    const mode = await askMode(address);
    if (mode === 'standalone')
      return { reason, advice: `It is no Cluster: begin ${setting} with redis:// or rediss://.` };
    if (mode === 'sentinel') {
      const advice = `It is a Sentinel: give redis+sentinel://host:port,host:port/primary in ${setting}.`;
      return { reason, advice };
    }
  }
  const advice = `Check that it runs, and host, port and scheme (rediss:// for TLS) in ${setting}.`;
  // Redis refuses with a reply, and the system with a code: an answer with neither is in another language.
  const isForeign =
    address.kind === 'single' && code === null && errorCode(error) === '' && !(error instanceof NoAnswerError);
  return { reason: isForeign ? 'what answers is not Redis' : reason, advice };
}

/** Why the Sentinels name no primary; null if one of them does. */
async function explainSentinels(setting: string, address: Parsed): Promise<Explanation | null> {
  const asked = await askSentinels(address);
  if (asked.some(({ primary }) => primary !== null)) return null;
  const errors = asked.flatMap((answer) => (answer.error === null ? [] : [answer.error]));
  if (errors.length < asked.length) {
    return {
      reason: 'the Sentinels know no primary of that name',
      advice: `Give the name after "sentinel monitor" in their configuration at the end of ${setting}: redis+sentinel://host:port,host:port/name.`,
    };
  }
  const reason = `no Sentinel answers: ${redisReason(errors[0])}`;
  // A Redis does not know the command.
  if (errors.some((error) => replyCode(error) === 'ERR')) {
    return {
      reason,
      advice: `It is a Redis and no Sentinel: give the Sentinels' hosts and ports in ${setting} (26379 unless set), or begin it with redis:// where there are none.`,
    };
  }
  return {
    reason,
    advice: `Check that they run, host and port of each in ${setting}, and sentinelPassword there if they ask for one.`,
  };
}

/** The code of Node's error; empty if it has none. */
function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

function schemeOf(kind: Parsed['kind']): string {
  return kind === 'single' ? 'redis' : `redis+${kind}`;
}

/** `reason`: the code of Node's error. */
function certificateAdvice(reason: string, setting: string, isAuthorityNamed: boolean): string {
  if (reason === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `Its certificate is of another name than the host in ${setting}: give a host that it is of, or that name as ?tlsServerName=name at the end.`;
  }
  if (/EXPIRED|NOT_YET_VALID/.test(reason)) return 'Renew its certificate, or set the clock of this machine right.';
  if (isAuthorityNamed) {
    return `The authority in the file of tlsCaFile did not sign its certificate: name the file of the one that did at the end of ${setting}.`;
  }
  return `Name a file with the certificate of its authority: ?tlsCaFile=/path/ca.pem at the end of ${setting}, or in NODE_EXTRA_CA_CERTS.`;
}
