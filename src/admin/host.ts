/** Reading of `Host` headers and bound addresses: pure, so that every odd form can be tried in a test. */
import { isIP } from 'node:net';

/** Host (RFC 9110, 7.2): a name, an IPv4 address or a bracketed IPv6 address, then perhaps a port. Never user info or a path. */
const HOST_HEADER = /^(?:\[([0-9a-f:.]+)\]|([^\s:@/\\?#[\]]+))(?::[0-9]{1,5})?$/i;

/** The name or address of a `Host` header, lower case, without brackets and port; null where it has none of a known form. */
export function hostnameOf(hostHeader: string | undefined): string | null {
  const match = HOST_HEADER.exec(hostHeader ?? '');
  return (match?.[1] ?? match?.[2])?.toLowerCase() ?? null;
}

/** Whether it is an address rather than a name. */
export function isAddress(hostname: string): boolean {
  return isIP(hostname) !== 0;
}

/** The same without the brackets of an IPv6 address, lower case: how configured names are compared. */
export function bare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
}
