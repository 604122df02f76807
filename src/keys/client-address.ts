/**
 * The address that a request comes from. `net.BlockList` and `net.SocketAddress` do the arithmetic; the walk along
 * `X-Forwarded-For` is ours, because proxy-addr takes an unreadable entry for an address.
 */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv4, isIPv6, SocketAddress } from 'node:net';
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';

/** An IPv4 address in dotted form, or an IPv6 address as RFC 5952 writes it. */
interface Address {
  readonly text: string;
  readonly family: 'ipv4' | 'ipv6';
}

/** An IPv4 address in IPv6 form (`::ffff:10.0.0.1`) begins with this. */
const MAPPED = '::ffff:';
/** An IPv4-mapped IPv6 subnet (`::ffff:10.0.0.0/104`) begins after this many bits. */
const MAPPED_BITS = 96;
/** A longer chain of proxies is an attempt to make the gateway work. */
const MAX_HOPS = 32;
const BRACKETED = /^\[(.+)\](?::\d{1,5})?$/;
const IPV4_WITH_PORT = /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/;

/** Null for text that is no address. A zone (`fe80::1%eth0`) is dropped: in a header it is text of anyone's choice. */
function parseAddress(text: string): Address | null {
  if (isIPv4(text)) return { text, family: 'ipv4' };
  if (!isIPv6(text)) return null;
  const { address } = new SocketAddress({ address: text.replace(/%.*$/s, ''), family: 'ipv6' });
  const mapped = address.startsWith(MAPPED) ? address.slice(MAPPED.length) : '';
  return isIPv4(mapped) ? { text: mapped, family: 'ipv4' } : { text: address, family: 'ipv6' };
}

/** An entry of `X-Forwarded-For`. Some proxies add the port, and with it brackets around IPv6. */
function parseForwarded(entry: string): Address | null {
  const text = entry.trim();
  const inner = (BRACKETED.exec(text) ?? IPV4_WITH_PORT.exec(text))?.[1];
  return parseAddress(inner ?? text);
}

/** One list per family: Node counts an IPv4 address among the subnets of IPv6 that hold its mapped form, such as `::/0`. */
type Subnets = Readonly<Record<Address['family'], BlockList>>;

interface Subnet {
  readonly address: Address;
  readonly prefix: number;
}

/** A subnet (`10.0.0.0/8`) or a single address; null for text that is neither. */
function readSubnet(cidr: string): Subnet | null {
  const [base = '', bits, ...rest] = cidr.split('/');
  const address = parseAddress(base);
  const isMapped = address?.family === 'ipv4' && base.includes(':');
  const maxBits = address?.family === 'ipv4' && !isMapped ? 32 : 128;
  const prefix = bits === undefined ? maxBits : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  const minBits = isMapped ? MAPPED_BITS : 0;
  if (address === null || rest.length > 0 || !(prefix >= minBits && prefix <= maxBits)) return null;
  return { address, prefix: prefix - minBits };
}

/** A subnet or a single address in the one form in which it is stored and shown, `10.0.0.0/8`; null for text that is neither. */
export function canonicalSubnet(cidr: string): string | null {
  const subnet = readSubnet(cidr);
  return subnet && `${subnet.address.text}/${subnet.prefix}`;
}

/** Throws RangeError that names the first that is neither a subnet nor an address. */
function subnetsOf(cidrs: readonly string[]): Subnets {
  const subnets: Subnets = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const cidr of cidrs) {
    const subnet = readSubnet(cidr);
    if (subnet === null) {
      throw new RangeError(
        `"${cidr}" is no subnet: write an address and a prefix length, such as 10.0.0.0/8 or fd00::/8.`,
      );
    }
    const { text, family } = subnet.address;
    subnets[family].addSubnet(text, subnet.prefix, family);
  }
  return subnets;
}

/** Made once for each list of a key: copies of a key share it. */
const subnetsOfKeys = new WeakMap<readonly string[], Subnets>();

/**
 * Whether a client's address, as `createClientAddress` gives it, lies in one of the subnets (K11: a key may be bound to
 * addresses). `unknown` lies in none.
 */
export function isInSubnets(address: string, cidrs: readonly string[]): boolean {
  const subnets = subnetsOfKeys.get(cidrs) ?? subnetsOf(cidrs);
  subnetsOfKeys.set(cidrs, subnets);
  const client = parseAddress(address);
  return client !== null && subnets[client.family].check(client.text, client.family);
}

/**
 * Makes the function that finds the client's address of a request, `unknown` if the socket has none (K9: failed
 * authentications are counted by it).
 *
 * `X-Forwarded-For` counts only as far as trusted proxies wrote it: from the right, the first address that is none of
 * theirs is the client's, because the client wrote everything further left. An entry that is no address ends the walk at
 * the proxy that passed it on, so no text of a client's choice becomes an address.
 *
 * `trustedProxies` are subnets (`10.0.0.0/8`) or single addresses. Throws RangeError that names the one that is neither.
 */
export function createClientAddress(
  trustedProxies: readonly string[],
): (ctx: { readonly req: IncomingMessage }) => string {
  const subnets = subnetsOf(trustedProxies);
  const isTrusted = ({ text, family }: Address): boolean => subnets[family].check(text, family);

  return ({ req }) => {
    // Undefined once the socket is closed.
    const { remoteAddress } = req.socket;
    const forwardedFor = req.headers['x-forwarded-for'];
    let client = remoteAddress === undefined ? null : parseAddress(remoteAddress);
    if (client === null) return 'unknown';
    const isForwarded = forwardedFor !== undefined && trustedProxies.length > 0;
    const entries = isForwarded ? [forwardedFor].flat().join().split(',') : [];
    for (const entry of entries.slice(-MAX_HOPS).toReversed()) {
      if (!isTrusted(client)) break;
      const previous = parseForwarded(entry);
      if (previous === null) break;
      client = previous;
    }
    return client.text;
  };
}

/** The name under which failures of an address are counted: of IPv6 the /64, because one subscriber has all of it (K9). */
export function addressKey(address: string): string {
  return holders.memo(address);
}

/** Every request asks for its client's, and the parts of IPv6 take some microseconds to find. */
const holders = new LRUCache<string, string>({ ...atMost(10_000), memoMethod: holderOf });

function holderOf(address: string): string {
  const parsed = parseAddress(address);
  if (parsed === null) return address;
  if (parsed.family === 'ipv4') return parsed.text;
  const [head = '', tail = ''] = parsed.text.split('::');
  const [first, last] = [head, tail].map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: 8 - (first?.length ?? 0) - (last?.length ?? 0) }, () => '0');
  const network = [...(first ?? []), ...zeros, ...(last ?? [])].slice(0, 4).join(':');
  return `${parseAddress(`${network}::`)?.text}/64`;
}
