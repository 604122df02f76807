/** Conditional requests and content negotiation, as far as this API needs them. */
import Negotiator from 'negotiator';
import { CODINGS, type Coding } from './representation.ts';

const ETAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;

/** Whether `If-None-Match` names the ETag, by weak comparison (RFC 9110 section 13.1.2). */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true;
  const candidates = ifNoneMatch.match(ETAG) ?? [];
  return candidates.some((candidate) => candidate.replace(/^W\//, '') === etag);
}

/** What most clients and browsers send, negotiated once and for all: each time it would cost more than a cached read. */
const USUAL: ReadonlyMap<string, Coding | null> = new Map(
  ['', 'identity', 'gzip', 'br', 'zstd', 'gzip, deflate', 'gzip, deflate, br', 'gzip, deflate, br, zstd', 'br, gzip']
    .flatMap((text) => [text, text.replaceAll(' ', '')])
    .map((text) => [text, negotiate(text)]),
);

/** The coding that the consumer prefers among those offered; null for none. */
export function negotiateCoding(acceptEncoding: string): Coding | null {
  const usual = USUAL.get(acceptEncoding);
  return usual === undefined ? negotiate(acceptEncoding) : usual;
}

function negotiate(acceptEncoding: string): Coding | null {
  if (acceptEncoding === '') return null;
  const negotiator = new Negotiator({ headers: { 'accept-encoding': acceptEncoding } });
  const preferred = negotiator.encoding([...CODINGS, 'identity'], { preferred: CODINGS });
  return CODINGS.find((coding) => coding === preferred) ?? null;
}
