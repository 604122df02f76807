/** Kinds of settings that name machines: hosts, networks, addresses of services. */
import { BlockList, isIP } from 'node:net';
import { parseRedisAddress, RedisAddressError } from '../redis/address.ts';
import { type Kind, list, textSchema, ValueProblem } from './kinds.ts';

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

function isHost(text: string): boolean {
  if (isIP(text) !== 0) return true;
  // What looks like a dotted address but is none (a typing error) would otherwise pass as a name of numbers.
  return HOST_NAME.test(text) && !/^[\d.]+$/.test(text);
}

/** An address to listen on. */
export function host(): Kind<string> {
  return {
    schema: textSchema((text) => (isHost(text) ? text : null)),
    allowed: 'an IP address or a host name, without port or brackets, such as 127.0.0.1, 0.0.0.0, :: or localhost',
  };
}

/** Names that a `Host` header may carry, without port. */
export function hostNames(): Kind<string[]> {
  return list(
    (text) => (isHost(text) ? text.toLowerCase() : null),
    'host names or IP addresses, without ports, as a list or with commas between them',
  );
}

/** Networks in CIDR form; an address alone stands for itself. */
export function networks(): Kind<string[]> {
  return list(parseNetwork, 'CIDR blocks, as a list or with commas between them, such as 10.0.0.0/8, fd00::/8');
}

function parseNetwork(text: string): string | null {
  const [address = '', prefix, ...rest] = text.split('/');
  const version = address.includes('%') ? 0 : isIP(address);
  if (version === 0 || rest.length > 0) return null;
  const bits = version === 4 ? 32 : 128;
  if (prefix === undefined) return `${address}/${bits}`;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits ? `${address}/${Number(prefix)}` : null;
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

/** Base address of an HTTP service, without a slash at its end. */
export function httpUrl(): Kind<string> {
  return {
    schema: textSchema(parseHttpUrl),
    allowed:
      'an http:// or https:// address without user name, query and fragment, such as https://store.example:8443/base',
  };
}

function parseHttpUrl(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:\/\//i.test(text)) return null;
  if (url.username !== '' || url.password !== '') throw new ValueProblem('it holds a user name or password');
  if (url.search !== '' || url.hash !== '') throw new ValueProblem('it holds a query or a fragment');
  return url.href.replace(/\/+$/, '');
}

/** Address of a Redis, of its Sentinels or of a Cluster's nodes. It can hold a password. */
export function redisUrl(): Kind<string> {
  return {
    schema: textSchema(checkedRedisUrl),
    allowed:
      'redis://[user:password@]host[:port][/db], redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/primary[/db]; rediss for TLS',
  };
}

function checkedRedisUrl(text: string): string {
  try {
    parseRedisAddress(text);
    return text;
  } catch (error) {
    if (error instanceof RedisAddressError) throw new ValueProblem(error.message);
    throw error;
  }
}
