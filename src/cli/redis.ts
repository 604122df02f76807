/** Opens a Redis for one command: it answers within seconds, or the command ends with what to do about it. */
import {
  describeAddress,
  parseRedisAddress,
  RedisAddressError,
  type RedisAddress as Parsed,
} from '../redis/address.ts';
import { databaseOf } from '../redis/client.ts';
import { openRedis, type RedisLink, type RedisRole } from '../redis/link.ts';
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
    const reason = redisReason(error);
    throw fail(`${describeAddress(address)} can't be used (${reason})`, accessAdvice(reason, setting, address));
  }
}

function opened(
  { role, url }: RedisAddress,
  fail: (finding: string, advice: string) => RedisAccessError,
): { readonly address: Parsed; readonly link: RedisLink } {
  try {
    const address = parseRedisAddress(url);
    return { address, link: openRedis({ url, role, commandTimeoutMs: ANSWER_WITHIN_MS }) };
  } catch (error) {
    if (!(error instanceof RedisAddressError)) throw error;
    throw fail(error.message, `Set ${settingOf(role)} to an address that evalgate can use: see docs/redis.md.`);
  }
}

/** Rejects with the first failure to connect: a command has no time to see whether Redis comes back. */
async function answers(link: RedisLink): Promise<void> {
  if (link.isUp()) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const late = (): void => reject(new Error(`no answer within ${ANSWER_WITHIN_MS / 1000} s`));
  const timer = setTimeout(late, ANSWER_WITHIN_MS);
  const ends = [link.onUp(resolve), link.onDown(reject)];
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    for (const end of ends) end();
  }
}

/** A database that is not there would otherwise go unnoticed, and the first one be used in its place. */
async function selectDatabase({ client }: RedisLink): Promise<void> {
  const db = databaseOf(client);
  if (db !== 0) await client.select(db);
}

/** Why Redis, or the way there, refuses: Redis's own words or the code of the system's error. */
export function redisReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message.startsWith('Unknown RESP type')) return 'what answers is not Redis';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}

function accessAdvice(reason: string, setting: string, { kind, tls }: Parsed): string {
  if (/^(?:NOAUTH|WRONGPASS|NOPERM|ERR AUTH)/.test(reason)) {
    return `Give a user and password that it takes in ${setting}: ${schemeOf(kind)}://user:password@host:port.`;
  }
  if (/CERT|SIGNATURE/.test(reason)) return certificateAdvice(reason, setting, (tls?.caFile ?? null) !== null);
  if (/cluster support disabled/.test(reason)) return `It is no Cluster: begin ${setting} with redis:// or rediss://.`;
  if (/unknown command 'cluster'/i.test(reason)) {
    return `It is a Sentinel: give redis+sentinel://host:port,host:port/primary in ${setting}.`;
  }
  if (/unknown command 'sentinel'/i.test(reason)) {
    return `It is a Redis and no Sentinel: give the Sentinels' hosts and ports in ${setting} (26379 unless set), or begin it with redis:// where there are none.`;
  }
  if (/no primary of that name/.test(reason)) {
    return `Give the name after "sentinel monitor" in their configuration at the end of ${setting}: redis+sentinel://host:port,host:port/name.`;
  }
  if (/no Sentinel answers/.test(reason)) {
    return `Check that they run, host and port of each in ${setting}, and sentinelPassword there if they ask for one.`;
  }
  if (/DB index/.test(reason)) return `Give another database number in ${setting}, or raise "databases" there.`;
  return `Check that it runs, and host, port and scheme (rediss:// for TLS) in ${setting}.`;
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
