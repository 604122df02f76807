/** Codecs of settings with a format of their own: addresses, bearer tokens and deprecations. */
import { BlockList, isIP } from 'node:net';
import { type Deprecation, OPERATIONS } from '../domain/operations.ts';
import { parseRedisAddress, RedisAddressError } from '../redis/address.ts';
import { type Codec, list, text, ValueProblem } from './codecs.ts';

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

function isHost(written: string): boolean {
  if (isIP(written) !== 0) return true;
  // A mistyped IP address would otherwise pass as a host name of numbers.
  return HOST_NAME.test(written) && !/^[\d.]+$/.test(written);
}

/** An address to listen on. */
export function host(): Codec<string> {
  return text(
    (written) => (isHost(written) ? written : null),
    'an IP address or a host name, without port or brackets, such as 127.0.0.1, 0.0.0.0, :: or localhost',
  );
}

/** Names that a `Host` header may carry, without port. */
export function hostNames(): Codec<string[]> {
  return list(
    (written) => (isHost(written) ? written.toLowerCase() : null),
    'host names or IP addresses, without ports, as a list or with commas between them',
  );
}

/** Networks in CIDR form; a single address stands for itself. */
export function networks(): Codec<string[]> {
  return list((written) => {
    const [address = '', prefix, ...rest] = written.split('/');
    const version = address.includes('%') ? 0 : isIP(address);
    if (version === 0 || rest.length > 0) return null;
    const bits = version === 4 ? 32 : 128;
    if (prefix === undefined) return `${address}/${bits}`;
    return /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits ? `${address}/${Number(prefix)}` : null;
  }, 'CIDR blocks, as a list or with commas between them, such as 10.0.0.0/8, fd00::/8');
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** Whether a name or address, however it is written, is this machine only: `localhost`, 127.0.0.0/8 or `::1`. */
export function isLoopback(hostName: string): boolean {
  const version = isIP(hostName);
  if (version === 0) return hostName.toLowerCase() === 'localhost';
  return LOOPBACK.check(hostName, version === 4 ? 'ipv4' : 'ipv6');
}

/** The base address of an HTTP service, without a slash at its end. */
export function httpUrl(): Codec<string> {
  return text((written) => {
    const url = URL.parse(written);
    if (url === null || !/^https?:\/\//i.test(written)) return null;
    if (url.username !== '' || url.password !== '') throw new ValueProblem('it holds a user name or password');
    if (url.search !== '' || url.hash !== '') throw new ValueProblem('it holds a query or a fragment');
    return url.href.replace(/\/+$/, '');
  }, 'an http:// or https:// address without user name, query and fragment, such as https://store.example:8443/base');
}

/** The address of a Redis, of its Sentinels or of a Cluster's nodes. It can hold a password. */
export function redisUrl(): Codec<string> {
  return text((written) => {
    try {
      parseRedisAddress(written);
      return written;
    } catch (error) {
      throw error instanceof RedisAddressError ? new ValueProblem(error.message) : error;
    }
  }, 'redis://[user:password@]host[:port][/db], redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/primary[/db]; rediss for TLS');
}

export interface NamedToken {
  /** The user of the token; goes into the audit. */
  readonly name: string;
  readonly token: string;
}

/** The name of an admin token that was given without one. */
const UNNAMED = 'admin';
/** A token is chosen by an operator: any visible ASCII but the comma, which stands between pairs. */
const TOKEN = /^[\x21-\x2b\x2d-\x7e]{1,512}$/;
/** The token of a pair is never only `=`: those end a Base64 text that was given as one token. */
const NAMED_TOKEN = /^([A-Za-z0-9][A-Za-z0-9_.@-]{0,63})=(=*[^=].*)$/;

/** The token sent to the store: anything that a header can carry in one word. */
export function upstreamToken(): Codec<string> {
  return text(
    (written) => (/^[\x21-\x7e]{1,4096}$/.test(written) ? written : null),
    '1 to 4096 visible ASCII characters without spaces',
  );
}

export function adminTokens(): Codec<NamedToken[]> {
  return text(
    parseAdminTokens,
    'one token, or name=token pairs with commas between them; a token is 1 to 512 visible ASCII characters without spaces and commas',
  );
}

/**
 * Reads `ADMIN_TOKEN`. Throws a ValueProblem, which never quotes it: a name cannot be told from a part of a token that
 * was mistyped.
 */
export function parseAdminTokens(written: string): NamedToken[] {
  if (TOKEN.test(written) && !NAMED_TOKEN.test(written)) return [{ name: UNNAMED, token: written }];
  const tokens: NamedToken[] = [];
  for (const [index, pair] of written.split(',').entries()) {
    const part = `part ${index + 1}`;
    const [, name, token = ''] = NAMED_TOKEN.exec(pair.trim()) ?? [];
    if (name === undefined || !TOKEN.test(token)) {
      throw new ValueProblem(`${part} (between commas) is not a name=token pair`);
    }
    if (tokens.some((other) => other.name === name)) throw new ValueProblem(`the name of ${part} is given twice`);
    if (tokens.some((other) => other.token === token)) throw new ValueProblem(`the token of ${part} is given twice`);
    tokens.push({ name, token });
  }
  return tokens;
}

const DEPRECATION = /^(?<target>\S+) from (?<from>\S+)(?: until (?<until>\S+))?(?: see (?<link>\S+))?$/;
const DATE = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}:\d{2})?Z?$/;
const TARGETS = ['v1', 'v2', ...OPERATIONS.v1, ...OPERATIONS.v2] as const;

/** Texts like `v1 from 2027-01-01 until 2028-01-01 see https://docs.example/v1`, each with another target. */
export function deprecations(): Codec<Deprecation[]> {
  const codec = list(
    parseDeprecation,
    'a list of texts like "v1 from 2027-01-01 until 2028-01-01 see https://docs.example/v1": a surface or an operationId, then dates in UTC',
  );
  const schema = codec.schema.superRefine((all, context) => {
    const targets = all.map(({ target }) => target);
    const repeated = targets.find((target, index) => targets.indexOf(target) !== index);
    if (repeated === undefined) return;
    context.addIssue({ code: 'custom', params: { problem: `${repeated} is there more than once` } });
  });
  return { ...codec, schema };
}

function parseDeprecation(written: string): Deprecation | null {
  const groups = DEPRECATION.exec(written)?.groups;
  if (groups === undefined) return null;
  const { target: name, from = '', until, link } = groups;
  const target = TARGETS.find((known) => known === name);
  if (target === undefined) throw new ValueProblem(`there is no ${name}: it can be ${TARGETS.join(', ')}`);
  const fromMs = parseDate(from);
  const untilMs = until === undefined ? null : parseDate(until);
  // RFC 9745 section 4.
  if (untilMs !== null && untilMs < fromMs) throw new ValueProblem(`${target} would end before it is deprecated`);
  return { target, fromMs, untilMs, link: link === undefined ? null : parseLink(link) };
}

/** Unix milliseconds of a whole second; a date without a time is its beginning. */
function parseDate(written: string): number {
  const [, date, time = 'T00:00:00'] = DATE.exec(written) ?? [];
  const timeMs = Date.parse(`${date}${time}Z`);
  // `Date.parse` takes 30 February for a day of March.
  const isReal = !Number.isNaN(timeMs) && new Date(timeMs).toISOString() === `${date}${time}.000Z`;
  if (!isReal) throw new ValueProblem(`${JSON.stringify(written)} is no date like 2027-01-01 or 2027-01-01T12:00:00Z`);
  return timeMs;
}

/** An address in the form in which a header can carry it. */
function parseLink(written: string): string {
  const url = URL.parse(written);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new ValueProblem(`${JSON.stringify(written)} is no http or https address`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new ValueProblem('the address after "see" is shown to everybody and may hold no user name and password');
  }
  return url.href;
}
