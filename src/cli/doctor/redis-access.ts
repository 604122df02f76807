/** Opens a Redis for the doctor: it answers within seconds, or the finding says what to do about it. */
import {
  describeAddress,
  describeNode,
  parseRedisAddress,
  type RedisAddress,
  RedisAddressError,
} from '../../redis/address.ts';
import { RedisLink, type RedisRole } from '../../redis/connection.ts';
import { askNode } from '../../redis/open-connection.ts';
import { HandshakeError, replyCode, replyText } from '../../redis/errors.ts';
import { type AddressSetting, refusalOf, RIGHTS } from '../../redis/refusal.ts';
import { systemTimers, withDeadline } from '../../time/timers.ts';
import { CliError } from '../command.ts';
import { messageOf, systemCode } from '../../log/error.ts';

/** Longer than a request of the gateway may wait, and short enough for a user at a terminal. */
const ANSWER_WITHIN_MS = 5000;

export const RIGHTS_ADVICE = `Give its user these rights: ACL SETUSER name ${RIGHTS}`;

/** Redis can't be used. `finding` says why, `advice` what to do; neither holds a password. */
export class RedisAccessError extends CliError {
  readonly finding: string;
  readonly advice: string;

  constructor(setting: string, finding: string, advice: string) {
    super(`${setting}: ${finding}. ${advice}`);
    this.finding = finding;
    this.advice = advice;
  }
}

/** The variable that sets the Redis of this role. */
export function settingOf(role: RedisRole): AddressSetting {
  return role === 'state' ? 'REDIS_URL' : 'REDIS_CACHE_URL';
}

class NoAnswerError extends Error {}

/** A link that is up. The caller closes it. Rejects with RedisAccessError. */
export async function openAnsweringRedis(role: RedisRole, url: string): Promise<RedisLink> {
  const setting = settingOf(role);
  const address = parsedAddress(setting, url);
  const link = new RedisLink({ url, role, timeoutMs: ANSWER_WITHIN_MS });
  try {
    await untilUp(link);
    return link;
  } catch (error) {
    const { reason, advice } = await explain(error, setting, address);
    await link.close();
    throw new RedisAccessError(setting, `${describeAddress(address)} can't be used (${reason})`, advice);
  }
}

function parsedAddress(setting: string, url: string): RedisAddress {
  try {
    return parseRedisAddress(url);
  } catch (error) {
    if (!(error instanceof RedisAddressError)) throw error;
    const advice = `Set ${setting} to an address that evalgate can use: see docs/redis.md.`;
    throw new RedisAccessError(setting, error.message, advice);
  }
}

/** Rejects with the first failure to connect: a command does not wait for Redis to come back. */
async function untilUp(link: RedisLink): Promise<void> {
  if (link.isUp()) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const ends = [link.onUp(resolve), link.onDown(reject)];
  try {
    await withDeadline(promise, ANSWER_WITHIN_MS, systemTimers, () => {
      throw new NoAnswerError(`no answer within ${ANSWER_WITHIN_MS / 1000} s`);
    });
  } finally {
    for (const end of ends) end();
  }
}

/** The reason of a failed command or connection: the code of the system's error, or the text of the reply. */
export function redisReason(error: unknown): string {
  return replyText(error) ?? systemCode(error) ?? messageOf(error);
}

interface Explanation {
  readonly reason: string;
  readonly advice: string;
}

async function explain(error: unknown, setting: AddressSetting, address: RedisAddress): Promise<Explanation> {
  const { kind } = address;
  const reason = redisReason(error);
  const code = replyCode(error);
  const refused = error instanceof HandshakeError ? error.command : null;
  if (refused === 'SELECT' && code === 'ERR') {
    return { reason, advice: `Give another database number in ${setting}, or raise "databases" there.` };
  }
  if (refused === 'AUTH' && code === 'ERR') {
    return { reason, advice: `It takes no password: leave it out in ${setting}, or set one in Redis.` };
  }
  const failure = kind === 'sentinel' ? await explainSentinels(setting, address) : null;
  if (failure !== null) return failure;
  if (code === 'NOAUTH' || code === 'WRONGPASS') {
    const form = `${kind === 'single' ? 'redis' : `redis+${kind}`}://user:password@host:port`;
    return { reason, advice: `Give a user and password that it takes in ${setting}: ${form}.` };
  }
  if (/CERT|SIGNATURE/.test(systemCode(error) ?? '')) {
    return { reason, advice: certificateAdvice(reason, setting, (address.tls?.caFile ?? null) !== null) };
  }
  const isSilent = systemCode(error) !== null || error instanceof NoAnswerError;
  const mode = kind === 'cluster' || !isSilent ? await askMode(address) : null;
  if (mode === 'sentinel') {
    const advice = `It is a Sentinel: give redis+sentinel://host:port,host:port/primary in ${setting}.`;
    return { reason, advice };
  }
  if (mode === 'cluster' && kind !== 'cluster') {
    return {
      reason,
      advice: `It is a node of a Cluster: begin ${setting} with redis+cluster:// or rediss+cluster://.`,
    };
  }
  if (mode === 'standalone' && kind === 'cluster') {
    return { reason, advice: `It is no Cluster: begin ${setting} with redis:// or rediss://.` };
  }
  if (refused === 'CONNECT') return { reason, advice: 'See maxclients and protected-mode there, and its log.' };
  if (refusalOf(error, { setting, kind })?.kind === 'forbidden') return { reason, advice: RIGHTS_ADVICE };
  if (mode === 'cluster') {
    const advice = `It says which slots and nodes are missing: redis-cli --cluster check ${describeNode(address.nodes[0])}.`;
    return { reason, advice };
  }
  const advice = `Check that it runs, and host, port and scheme (rediss:// for TLS) in ${setting}.`;
  // An error of Redis has a reply code, one of the system an error code. Without either, another protocol answers.
  const hasCode = code !== null || systemCode(error) !== null;
  const isForeign = kind === 'single' && !hasCode && !(error instanceof NoAnswerError);
  return { reason: isForeign ? 'the server is not Redis' : reason, advice };
}

/** Why the Sentinels name no primary; null if one of them does. */
async function explainSentinels(setting: string, address: RedisAddress): Promise<Explanation | null> {
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
  // A Redis answers the SENTINEL command with ERR.
  if (errors.some((error) => replyCode(error) === 'ERR')) {
    return {
      reason,
      advice: `It is a Redis and no Sentinel: give the Sentinels' hosts and ports in ${setting} (26379 unless set), or begin it with redis:// if there are none.`,
    };
  }
  return {
    reason,
    advice: `Check that they run, host and port of each in ${setting}, and sentinelPassword there if they ask for one.`,
  };
}

/** `reason`: the code of Node's error. */
function certificateAdvice(reason: string, setting: string, isAuthorityNamed: boolean): string {
  if (reason === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `Its certificate is for another name than the host in ${setting}: give the host that it names, or that name as ?tlsServerName=name at the end.`;
  }
  if (/EXPIRED|NOT_YET_VALID/.test(reason)) return 'Renew its certificate, or set the clock of this machine right.';
  if (isAuthorityNamed) {
    return `The authority in the file of tlsCaFile did not sign its certificate: name the file of the one that did at the end of ${setting}.`;
  }
  return `Name a file with the certificate of its authority: ?tlsCaFile=/path/ca.pem at the end of ${setting}, or in NODE_EXTRA_CA_CERTS.`;
}

export interface SentinelAnswer {
  /** Host and port of the Sentinel. */
  readonly name: string;
  /** Host and port of the primary; null if the Sentinel knows none of that name, or does not answer. */
  readonly primary: string | null;
  /** Why it does not answer; null if it does. */
  readonly error: unknown;
}

/** Asks each Sentinel of the address for its primary. Never rejects. */
export function askSentinels(address: RedisAddress): Promise<readonly SentinelAnswer[]> {
  return Promise.all(
    address.nodes.map(async (node): Promise<SentinelAnswer> => {
      const name = describeNode(node);
      try {
        const reply: unknown = await askNode(address, node, (client) =>
          client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', address.primary),
        );
        return { name, primary: Array.isArray(reply) ? reply.map(String).join(':') : null, error: null };
      } catch (error) {
        return { name, primary: null, error };
      }
    }),
  );
}

/** `standalone`, `cluster` or `sentinel`, from the first node of the address that answers; null if none does. */
async function askMode(address: RedisAddress): Promise<string | null> {
  const infos = await Promise.all(
    address.nodes.map((node) => askNode(address, node, (client) => client.info('server')).catch(() => '')),
  );
  return infos.map((info) => /^redis_mode:(\w+)/m.exec(info)?.[1] ?? null).find((mode) => mode !== null) ?? null;
}
