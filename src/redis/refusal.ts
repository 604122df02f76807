/**
 * How a Redis that answers refuses what it is asked for, in the words of `/readyz`, of the log and of the fleet. The first
 * word of an error reply is part of the protocol, and says which it is; its text is for people, and is shown as it is.
 */
import type { RedisAddress } from './address.ts';
import { HandshakeError, NotSentError, replyCode, replyText } from './errors.ts';

/**
 * - `full`: keys can still be revoked
 * - `read-only`: nothing can be changed, and everything be read
 * - `forbidden`: this gateway may not ask
 * - `away`: nothing can be read either, for now
 */
export interface Refusal {
  readonly code: string;
  readonly kind: 'full' | 'read-only' | 'forbidden' | 'away';
  /** The sentence about Redis, after its name: with its reply word for word, and what to do about it. */
  readonly finding: string;
  /** The reply word for word. */
  readonly reply: string;
}

/** The variable that holds its address. */
export type AddressSetting = 'REDIS_URL' | 'REDIS_CACHE_URL';

/** Which Redis it is, and how it is asked. */
export interface Refusing {
  readonly setting: AddressSetting;
  readonly kind: RedisAddress['kind'];
}

/** The grants that the user of a gateway needs, as rules of Redis's access control lists. */
export const RIGHTS = '~evalgate:* &evalgate:* +@all -@dangerous +info';

type Known = Pick<Refusal, 'kind' | 'finding'>;
const GRANT = `grant its user ${RIGHTS}, and rename no command`;
const CREDENTIALS: Known = { kind: 'forbidden', finding: 'refuses the user or the password of %s (%r)' };
/** `%s` stands for the setting of the address, `%r` for the reply, `%d` for the number of the database. */
const BY_CODE: Readonly<Record<string, Known>> = {
  OOM: { kind: 'full', finding: 'is full (%r)' },
  MISCONF: { kind: 'read-only', finding: 'cannot save to its disk (%r): make room there, or see why in its log' },
  READONLY: { kind: 'read-only', finding: 'is a read-only replica (%r)' },
  NOREPLICAS: { kind: 'read-only', finding: 'has fewer replicas than min-replicas-to-write (%r)' },
  NOPERM: { kind: 'forbidden', finding: `refuses commands to the user of %s (%r): ${GRANT}` },
  NOAUTH: CREDENTIALS,
  WRONGPASS: CREDENTIALS,
  LOADING: { kind: 'away', finding: 'is loading its data (%r)' },
  BUSY: { kind: 'away', finding: 'runs a script that does not end (%r)' },
  MASTERDOWN: { kind: 'away', finding: 'is a replica that has lost its primary (%r)' },
  CLUSTERDOWN: { kind: 'away', finding: 'does not serve all slots (%r)' },
  TRYAGAIN: { kind: 'away', finding: 'is moving slots to another node (%r)' },
};
const BY_STEP: Readonly<Record<HandshakeError['command'], Known>> = {
  CONNECT: { kind: 'forbidden', finding: 'refuses the connection (%r): see maxclients, protected-mode and its log' },
  AUTH: {
    kind: 'forbidden',
    finding: 'takes no password, and %s has one (%r): leave it out there, or set it in Redis',
  },
  SELECT: {
    kind: 'forbidden',
    finding: 'has no database %d (%r): give another number in %s, or raise "databases" there',
  },
};
const NODE_OF_CLUSTER: Known = {
  kind: 'forbidden',
  finding: 'is a node of a Cluster, and holds only some of the keys (%r): begin %s with redis+cluster://',
};
const OTHER: Known = { kind: 'forbidden', finding: `refuses a command that a gateway needs (%r): ${GRANT}` };

/** Sent elsewhere by a node of a Cluster. */
const REDIRECTIONS: ReadonlySet<string> = new Set(['MOVED', 'ASK', 'CROSSSLOT']);
/** The code with which a script of evalgate reports that what lies in one name is not what it takes. */
export const OF_ONE_NAME = 'BADDATA';
/** About the data of one name. */
const OF_DATA: ReadonlySet<string> = new Set([OF_ONE_NAME, 'WRONGTYPE', 'BUSYGROUP', 'NOGROUP']);
/** Belongs to how a command was sent. */
const OF_SENDING: ReadonlySet<string> = new Set(['NOSCRIPT', 'UNBLOCKED', 'EXECABORT']);

/**
 * The refusal of Redis, also if that is only why a later command was not sent. Null for any other error, and for an error
 * reply that is about the data of one name, or belongs to how commands are sent.
 */
export function refusalOf(error: unknown, redis: Refusing): Refusal | null {
  const reason = error instanceof NotSentError ? error.cause : error;
  const [code, reply] = [replyCode(reason), replyText(reason)];
  if (code === null || reply === null || OF_DATA.has(code) || OF_SENDING.has(code)) return null;
  const known = knownOf(reason, code, redis.kind);
  if (known === null) return null;
  const db = reason instanceof HandshakeError ? String(reason.db) : '';
  const finding = known.finding
    .replace('%s', redis.setting)
    .replace('%d', db)
    // Last, since it can hold anything.
    .replace('%r', () => reply);
  return { code, kind: known.kind, finding, reply };
}

function knownOf(reason: unknown, code: string, kind: RedisAddress['kind']): Known | null {
  if (REDIRECTIONS.has(code)) return kind === 'cluster' ? null : NODE_OF_CLUSTER;
  const known = BY_CODE[code];
  if (known !== undefined) return known;
  return reason instanceof HandshakeError ? BY_STEP[reason.command] : OTHER;
}
