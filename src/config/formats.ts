/** Codecs of settings with a format of their own: addresses, the store's token, keys of the cache and deprecations. */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import { type Deprecation, OPERATIONS } from '../domain/operations.ts';
import { parseRedisAddress, RedisAddressError } from '../redis/address.ts';
import { codec, list, parsed, readEach, ValueProblem } from './codecs.ts';

/** A mistyped IP address would otherwise pass as a host name of numbers. */
const hostNameSchema = z.hostname().refine((written) => !/^[\d.]+$/.test(written));
const hostSchema = z.union([z.ipv4(), z.ipv6(), hostNameSchema]);

export const host = codec(
  hostSchema,
  'an IP address or a host name, without port or brackets, such as 127.0.0.1, 0.0.0.0, :: or localhost',
);

/** Names that a `Host` header may carry, without port. */
export const hostNames = list(
  hostSchema.transform((written) => written.toLowerCase()),
  'host names or IP addresses, without ports, as a list or with commas between them',
);

/** Networks in CIDR form; a single address stands for itself. */
export const networks = list(
  z.union([
    z.cidrv4(),
    z.cidrv6(),
    z.ipv4().transform((address) => `${address}/32`),
    z.ipv6().transform((address) => `${address}/128`),
  ]),
  'CIDR blocks, as a list or with commas between them, such as 10.0.0.0/8, fd00::/8',
);

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** Whether a name or address, however it is written, is this machine only: `localhost`, 127.0.0.0/8 or `::1`. */
export function isLoopback(hostName: string): boolean {
  const version = isIP(hostName);
  if (version === 0) return hostName.toLowerCase() === 'localhost';
  return LOOPBACK.check(hostName, version === 4 ? 'ipv4' : 'ipv6');
}

const HTTP_URL = z.url({ protocol: /^https?$/ });

/** The base address of an HTTP service, without a slash at its end. */
export const httpUrl = codec(
  parsed(HTTP_URL, parseBaseUrl),
  'an http:// or https:// address without user name, query and fragment, such as https://store.example:8443/base',
);

function parseBaseUrl(written: string): string {
  const { username, password, search, hash, href } = new URL(written);
  if (username !== '' || password !== '') throw new ValueProblem('it holds a user name or password');
  if (search !== '' || hash !== '') throw new ValueProblem('it holds a query or a fragment');
  return href.replace(/\/+$/, '');
}

/** The address of a Redis, of its Sentinels or of a Cluster's nodes. It can hold a password. */
export const redisUrl = codec(
  parsed(z.string(), parseRedisUrl),
  'redis://[user:password@]host[:port][/db], redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/primary[/db]; rediss for TLS',
);

function parseRedisUrl(written: string): string {
  try {
    parseRedisAddress(written);
    return written;
  } catch (error) {
    throw error instanceof RedisAddressError ? new ValueProblem(error.message) : error;
  }
}

/** The token sent to the store: anything that a header can carry in one word. */
export const upstreamToken = codec(
  z.string().regex(/^[\x21-\x7e]{1,4096}$/),
  '1 to 4096 visible ASCII characters without spaces',
);

const KEY_BYTES = 32;
/** With or without padding. Other letters, also those of base64url, would be skipped silently. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export const encryptionKeys = codec<readonly KeyObject[]>(
  parsed(z.string(), parseEncryptionKeys).readonly(),
  `one or more keys of ${KEY_BYTES} bytes in base64, with commas between them: the first encrypts, all decrypt; make one with: openssl rand -base64 ${KEY_BYTES}`,
);

/** Throws a ValueProblem, which says what is wrong with which key and quotes none. */
function parseEncryptionKeys(written: string): KeyObject[] {
  const keys: Buffer[] = [];
  return readEach(written.split(','), (text, index) => {
    const part = `key ${index + 1}`;
    if (!BASE64.test(text.trim())) throw new ValueProblem(`${part} (between commas) is not in base64`);
    const key = Buffer.from(text.trim(), 'base64');
    if (key.length !== KEY_BYTES) throw new ValueProblem(`${part} has ${key.length} bytes instead of ${KEY_BYTES}`);
    if (keys.some((other) => other.equals(key))) throw new ValueProblem(`${part} is given twice`);
    keys.push(key);
    return createSecretKey(key);
  });
}

const SECRET_PREFIX = 'whsec_';
/** As Standard Webhooks has it. */
const SECRET_BYTES = { min: 24, max: 64 } as const;

export const changesSecrets = codec<readonly string[]>(
  parsed(z.string(), parseChangesSecrets).readonly(),
  `one or more secrets with commas between them, each whsec_ and ${SECRET_BYTES.min} to ${SECRET_BYTES.max} bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)`,
);

/** Throws a ValueProblem, which says what is wrong with which secret and quotes none. */
export function parseChangesSecrets(written: string): string[] {
  const secrets: string[] = [];
  return readEach(written.split(','), (text, index) => {
    const part = `secret ${index + 1}`;
    const secret = text.trim();
    const encoded = secret.slice(SECRET_PREFIX.length);
    if (!secret.startsWith(SECRET_PREFIX))
      throw new ValueProblem(`${part} (between commas) does not begin with whsec_`);
    if (!BASE64.test(encoded) || encoded.length % 4 !== 0) throw new ValueProblem(`${part} is not in base64`);
    const { length } = Buffer.from(encoded, 'base64');
    if (length < SECRET_BYTES.min || length > SECRET_BYTES.max) throw new ValueProblem(`${part} has ${length} bytes`);
    if (secrets.includes(secret)) throw new ValueProblem(`${part} is given twice`);
    secrets.push(secret);
    return secret;
  });
}

const DEPRECATION = /^(?<target>\S+) from (?<from>\S+)(?: until (?<until>\S+))?(?: see (?<link>\S+))?$/;
const TARGETS = ['v1', 'v2', ...OPERATIONS.v1, ...OPERATIONS.v2] as const;
const DATE = z.union([z.iso.date(), z.iso.datetime({ precision: 0 })]);

const DEPRECATIONS =
  'a list of texts like "v1 from 2027-01-01 until 2028-01-01 see https://docs.example/v1": a surface or an operationId, then dates in UTC';

/** Each with another target. */
export const deprecations = codec(
  parsed(list(parsed(z.string(), parseDeprecation), DEPRECATIONS), withoutRepetition),
  DEPRECATIONS,
);

function withoutRepetition(all: readonly Deprecation[]): readonly Deprecation[] {
  const targets = all.map(({ target }) => target);
  const repeated = new Set(targets.filter((target, index) => targets.indexOf(target) !== index));
  if (repeated.size > 0) throw new ValueProblem(`more than once: ${[...repeated].join(', ')}`);
  return all;
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
  if (DATE.safeParse(written).success) return Date.parse(written);
  throw new ValueProblem(`${JSON.stringify(written)} is no date like 2027-01-01 or 2027-01-01T12:00:00Z`);
}

/** An address in the form in which a header can carry it. */
function parseLink(written: string): string {
  if (!HTTP_URL.safeParse(written).success) {
    throw new ValueProblem(`${JSON.stringify(written)} is no http or https address`);
  }
  const { username, password, href } = new URL(written);
  if (username === '' && password === '') return href;
  throw new ValueProblem('the address after "see" is shown to everybody and may hold no user name and password');
}
