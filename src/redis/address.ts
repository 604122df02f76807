/**
 * Where a Redis is, as one address says: a single Redis, a Cluster by some of its nodes, or a primary that Sentinels know
 * by name; and the files of its TLS options.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type ConnectionOptions, createSecureContext } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { systemCode } from '../log/error.ts';

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** An address that can't be used. The message says why and holds nothing of it: an address can hold a password. */
export class RedisAddressError extends TypeError {
  override readonly name = 'RedisAddressError';
}

const ADDRESS_FORMS =
  'redis://host:port, redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/primary (rediss for TLS)';

const FORM = /^(rediss?)(?:\+(cluster|sentinel))?:\/\/(?:([^@/\s]*)@)?([^@/?\s]+)(?:\/([^?\s]*))?(?:\?(\S*))?$/i;
const NODE = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i;
const DATABASE = /^\d{0,9}$/;
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
const MAX_PORT = 65_535;

type Kind = 'single' | 'cluster' | 'sentinel';
const KINDS: Readonly<Record<string, Kind>> = { cluster: 'cluster', sentinel: 'sentinel' };

export type RedisAddress = Readonly<ReturnType<typeof parseRedisAddress>>;

/** Throws RedisAddressError. */
export function parseRedisAddress(url: string) {
  const [, scheme = '', kindName = '', userInfo = '', hosts, path = '', query = ''] = FORM.exec(url) ?? [];
  if (hosts === undefined) throw new RedisAddressError(`it is none of ${ADDRESS_FORMS}`);
  const kind = KINDS[kindName.toLowerCase()] ?? 'single';
  const isTls = scheme.toLowerCase() === 'rediss';
  const option = parseOptions(query, [
    'family',
    ...(isTls ? ['tlsCaFile', 'tlsCertFile', 'tlsKeyFile', 'tlsServerName'] : []),
    ...(kind === 'sentinel' ? ['sentinelUsername', 'sentinelPassword'] : []),
  ]);
  const [primary = '', database = '', ...rest] = kind === 'sentinel' ? path.split('/') : ['', path];
  if (kind === 'sentinel' && primary === '') {
    throw new RedisAddressError('it lacks the name of the primary: redis+sentinel://host:port,host:port/primary');
  }
  if (rest.length > 0) throw new RedisAddressError('what follows the name of the primary is its database, and no more');
  const family = ([0, 4, 6] as const).find((known) => String(known) === (option('family') ?? '0'));
  if (family === undefined) throw new RedisAddressError('its option family is 4, 6 or 0 (either)');
  const colon = userInfo.indexOf(':');
  const [user, password] = colon < 0 ? [userInfo, ''] : [userInfo.slice(0, colon), userInfo.slice(colon + 1)];
  return {
    kind,
    /** The Redis itself, some nodes of a Cluster, or the Sentinels. */
    nodes: parseNodes(hosts, kind),
    /** The name by which the Sentinels know the primary; empty if there are none. */
    primary: decoded(primary),
    db: parseDatabase(database, kind),
    /** For Redis itself. */
    credentials: { username: decoded(user) || null, password: decoded(password) || null },
    sentinelCredentials: { username: option('sentinelUsername'), password: option('sentinelPassword') },
    /** Null for connections that are not encrypted. */
    tls: isTls ? parseTls(option) : null,
    /** The version of IP; 0 for either. */
    family,
  };
}

/** For people and logs: hosts and ports, and nothing that is secret. */
export function describeAddress({ kind, nodes, primary }: RedisAddress): string {
  const hosts = nodes.map(describeNode).join(', ');
  if (kind === 'cluster') return `the Cluster at ${hosts}`;
  return kind === 'sentinel' ? `the primary ${primary} of the Sentinels at ${hosts}` : `Redis at ${hosts}`;
}

export function describeNode({ host, port }: RedisNode): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function parseNodes(hosts: string, kind: Kind): [RedisNode, ...RedisNode[]] {
  const [first, ...more] = hosts.split(',').map((text) => parseNode(text, kind));
  if (first === undefined) throw new RedisAddressError('it names no host');
  if (kind === 'single' && more.length > 0) {
    throw new RedisAddressError(
      'it names several hosts: a Cluster begins with redis+cluster://, Sentinels with redis+sentinel://',
    );
  }
  return [first, ...more];
}

function parseNode(text: string, kind: Kind): RedisNode {
  const [, host, port = String(kind === 'sentinel' ? SENTINEL_PORT : REDIS_PORT)] = NODE.exec(text) ?? [];
  if (host === undefined) throw new RedisAddressError('a host in it is neither a name nor an IP address');
  if (Number(port) > MAX_PORT) throw new RedisAddressError(`a port is at most ${MAX_PORT}`);
  return { host: host.replaceAll(/[[\]]/g, ''), port: Number(port) };
}

function parseDatabase(text: string, kind: Kind): number {
  if (!DATABASE.test(text)) throw new RedisAddressError('its database is no number');
  if (kind === 'cluster' && Number(text) !== 0) throw new RedisAddressError('a Cluster has database 0 alone');
  return Number(text);
}

/** Names of PEM files, and the name that the certificates must have if it is not the host's. */
function parseTls(option: (name: string) => string | null) {
  const [certFile, keyFile] = [option('tlsCertFile'), option('tlsKeyFile')];
  // One without the other would be ignored silently.
  if ((certFile === null) !== (keyFile === null)) {
    throw new RedisAddressError('its options tlsCertFile and tlsKeyFile go together');
  }
  return { caFile: option('tlsCaFile'), certFile, keyFile, serverName: option('tlsServerName') };
}

/** The value of an option, null for one that is not given. Throws RedisAddressError for one that is not known. */
function parseOptions(query: string, known: readonly string[]): (name: string) => string | null {
  // A plus sign in a password is no space.
  const options = new URLSearchParams(query.replaceAll('+', '%2B'));
  const unknown = [...options.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return (name) => options.get(name);
  const which = /^[A-Za-z]{1,40}$/.test(unknown) ? unknown : 'of another name';
  throw new RedisAddressError(`it has no option ${which}: there are ${known.join(', ')}`);
}

function decoded(text: string): string {
  const fault = 'it has a percent sign that begins no code: write %25 for it';
  return orRefuse(fault, () => decodeURIComponent(text));
}

/** Throws RedisAddressError with that fault if `run` throws. */
function orRefuse<T>(fault: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw new RedisAddressError(fault, { cause: error });
  }
}

/**
 * Whether two addresses lead to the same Redis, if with other credentials or TLS options. The addresses of a Cluster or of
 * Sentinels name only some of its nodes: other ones may be those of the same.
 */
export function isSameRedis(one: string, other: string): boolean {
  const [a, b] = [parseRedisAddress(one), parseRedisAddress(other)];
  if (a.kind !== b.kind || a.db !== b.db || a.primary !== b.primary) return false;
  return a.kind !== 'single' || isDeepStrictEqual(a.nodes, b.nodes);
}

/** The paths of the files that an address names. Throws RedisAddressError for what is no address. */
export function tlsFilesOf(url: string | null): readonly string[] {
  const tls = url === null ? null : parseRedisAddress(url).tls;
  return [tls?.caFile, tls?.certFile, tls?.keyFile].filter((path) => typeof path === 'string');
}

/** Reads a text file; throws the system's error if it cannot. */
export type ReadTlsFile = (path: string) => string;
const readNow: ReadTlsFile = (path) => readFileSync(path, 'utf8');

/**
 * Without `tlsCaFile` the authorities that Node trusts are trusted. Throws RedisAddressError if a file can't be read or
 * holds something else.
 */
export function tlsOptions(names: RedisAddress['tls'], read: ReadTlsFile = readNow): ConnectionOptions | undefined {
  if (names === null) return undefined;
  const { caFile, certFile, keyFile, serverName } = names;
  const contentOf = (path: string, option: string): string => readOrRefuse(path, option, read);
  return {
    ...(caFile === null ? {} : { ca: authority(contentOf(caFile, 'tlsCaFile')) }),
    ...(certFile === null || keyFile === null
      ? {}
      : ownCertificate(contentOf(certFile, 'tlsCertFile'), contentOf(keyFile, 'tlsKeyFile'))),
    ...(serverName === null ? {} : { servername: serverName }),
  };
}

/** Checked here, since Node takes any text for one, and then trusts nobody. */
function authority(pem: string): string {
  const fault = 'the file of its option tlsCaFile holds no certificate in PEM form';
  orRefuse(fault, () => new X509Certificate(pem));
  return pem;
}

function ownCertificate(cert: string, key: string): { readonly cert: string; readonly key: string } {
  const pair = { cert, key };
  const fault = 'the files of its options tlsCertFile and tlsKeyFile are no certificate and its key in PEM form';
  orRefuse(fault, () => createSecureContext(pair));
  return pair;
}

function readOrRefuse(path: string, option: string, read: ReadTlsFile): string {
  try {
    return read(path);
  } catch (error) {
    const code = systemCode(error) ?? 'unreadable';
    throw new RedisAddressError(`the file of its option ${option} can't be read (${code})`, { cause: error });
  }
}
