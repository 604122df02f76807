/**
 * Whom a request comes from. Written over ipaddr.js alone: the usual library for this (proxy-addr) wants a whole
 * request, takes an unreadable `X-Forwarded-For` entry for an address, and reads a subnet such as `10/8` as 0.0.0.10.
 */
import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;
type Subnet = readonly [address: IpAddress, bits: number];

/** An IPv4-mapped IPv6 subnet (`::ffff:10.0.0.0/104`) begins after this many bits. */
const MAPPED_BITS = 96;
/** More proxies than this are no chain but an attempt to make the gateway work. */
const MAX_HOPS = 32;
const BRACKETED = /^\[(.+)\](?::\d{1,5})?$/;
const IPV4_WITH_PORT = /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/;

/**
 * Null for what is no address. Node decides that: unlike ipaddr.js it takes IPv4 in its dotted form only, not `1` or
 * `010.0.0.1`, and it is quick about it. A zone (`fe80::1%eth0`) is dropped; in a header it is text of anyone's choice.
 */
function parseAddress(text: string): IpAddress | null {
  if (isIPv4(text)) return ipaddr.IPv4.parse(text);
  if (!isIPv6(text)) return null;
  const address = ipaddr.IPv6.parse(text.replace(/%.*$/s, ''));
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** An entry of `X-Forwarded-For`. Some proxies add the port, and with it brackets around IPv6. */
function parseForwarded(entry: string): IpAddress | null {
  const text = entry.trim();
  const inner = (BRACKETED.exec(text) ?? IPV4_WITH_PORT.exec(text))?.[1];
  return parseAddress(inner ?? text);
}

function format(address: IpAddress): string {
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString();
}

function parseSubnet(cidr: string): Subnet {
  const [base, bits, ...rest] = cidr.split('/');
  const unmapped = parseAddress(base ?? '');
  const isMapped = unmapped?.kind() === 'ipv4' && cidr.includes(':');
  const maxBits = unmapped?.kind() === 'ipv4' && !isMapped ? 32 : 128;
  const prefix = bits === undefined ? maxBits : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  const minBits = isMapped ? MAPPED_BITS : 0;
  if (unmapped === null || rest.length > 0 || !(prefix >= minBits && prefix <= maxBits)) {
    throw new RangeError(
      `"${cidr}" is no subnet: write an address and a prefix length, such as 10.0.0.0/8 or fd00::/8.`,
    );
  }
  return [unmapped, prefix - minBits];
}

function isWithin(address: IpAddress, [base, bits]: Subnet): boolean {
  return address.kind() === base.kind() && address.match(base, bits);
}

export interface Connection {
  /** The other end of the socket; Node has none once the socket is closed. */
  readonly remoteAddress: string | undefined;
  /** `X-Forwarded-For` as Node gives it. */
  readonly forwardedFor: string | readonly string[] | undefined;
}

/**
 * Makes the function that tells the caller's address, in its usual form (dotted IPv4; IPv6 as RFC 5952 writes it).
 *
 * `X-Forwarded-For` is believed only as far as it was written by the trusted proxies: from the right, the first address
 * that is none of theirs is the caller's, since that one wrote whatever stands further left. An entry that is no address
 * ends the walk at the proxy that passed it on, so that no text of a caller's choice ever becomes an address.
 *
 * `trustedProxies` are subnets (`10.0.0.0/8`) or single addresses. Throws RangeError, naming the one that is neither.
 */
export function createClientAddress(trustedProxies: readonly string[]): (connection: Connection) => string {
  const subnets = trustedProxies.map(parseSubnet);
  const isTrusted = (address: IpAddress): boolean => subnets.some((subnet) => isWithin(address, subnet));

  return ({ remoteAddress, forwardedFor }) => {
    let caller = remoteAddress === undefined ? null : parseAddress(remoteAddress);
    if (caller === null) return 'unknown';
    const entries = forwardedFor === undefined || subnets.length === 0 ? [] : [forwardedFor].flat().join().split(',');
    for (const entry of entries.slice(-MAX_HOPS).toReversed()) {
      if (!isTrusted(caller)) break;
      const previous = parseForwarded(entry);
      if (previous === null) break;
      caller = previous;
    }
    return format(caller);
  };
}

/**
 * What failures of an address are counted under: IPv4 as it is, IPv6 by its /64, because one subscriber has all of it.
 * What is no address is its own name.
 */
export function addressKey(address: string): string {
  const parsed = parseAddress(address);
  if (parsed === null) return address;
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const network = new ipaddr.IPv6([...parsed.toByteArray().slice(0, 8), 0, 0, 0, 0, 0, 0, 0, 0]);
  return `${network.toRFC5952String()}/64`;
}
