/** The bytes of a public response: rendered once per entry, compressed once per coding, named by their ETag. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib';
import Negotiator from 'negotiator';

/** RFC 9110 content codings on offer, the preferred one first. */
const CODINGS = ['br', 'zstd', 'gzip'] as const;
export type Coding = (typeof CODINGS)[number];

/** Below this a coding saves less than its header costs. */
const MIN_CODED_BYTES = 1024;
/** What a representation takes beside its bytes. Measured, rounded up. */
const OVERHEAD_BYTES = 600;
/** Middling effort: a response is compressed once, while a reader waits. */
const BROTLI_QUALITY = 5;

const compressors: Readonly<Record<Coding, (bytes: Buffer) => Promise<Buffer>>> = {
  br: (bytes) =>
    promisify(brotliCompress)(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
  zstd: (bytes) => promisify(zstdCompress)(bytes),
  gzip: (bytes) => promisify(gzip)(bytes),
};

/** One public form of one record, as JSON. */
export class Representation {
  /** The value of its `Link` header: where the other pages of a list or a transcript are. */
  readonly links: string | null;
  readonly #bytes: Buffer;
  readonly #hash: string;
  readonly #coded = new Map<Coding, Promise<Buffer>>();

  constructor(value: object, links: string | null = null) {
    this.links = links;
    const text = JSON.stringify(value);
    // Memory of its own: a slice of Node's shared pool would keep the whole pool alive for as long as the entry is cached.
    this.#bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
    this.#bytes.write(text);
    this.#hash = createHash('sha256').update(this.#bytes).digest('base64url').slice(0, 27);
  }

  /** What the representation may come to hold, its codings included. */
  get weightBytes(): number {
    return OVERHEAD_BYTES + 2 * this.#bytes.length;
  }

  /** The coding that the consumer prefers, or null for none. */
  codingFor(acceptEncoding: string | undefined): Coding | null {
    if (acceptEncoding === undefined || this.#bytes.length < MIN_CODED_BYTES) return null;
    return negotiateCoding(acceptEncoding);
  }

  /** A strong validator: it names the bytes and their coding (RFC 9110 section 8.8.3). */
  etag(coding: Coding | null): string {
    return coding === null ? `"${this.#hash}"` : `"${this.#hash}-${coding}"`;
  }

  body(coding: Coding | null): Buffer | Promise<Buffer> {
    return coding === null ? this.#bytes : this.#encode(coding);
  }

  /** Once, however many readers wait for it. */
  #encode(coding: Coding): Promise<Buffer> {
    const known = this.#coded.get(coding);
    if (known !== undefined) return known;
    const made = compressors[coding](this.#bytes).then((bytes) => Buffer.from(bytes));
    this.#coded.set(coding, made);
    return made;
  }
}

function negotiateCoding(acceptEncoding: string): Coding | null {
  const negotiator = new Negotiator({ headers: { 'accept-encoding': acceptEncoding } });
  const preferred = negotiator.encoding([...CODINGS, 'identity'], { preferred: CODINGS });
  return CODINGS.find((coding) => coding === preferred) ?? null;
}

const ETAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;

/** Whether `If-None-Match` names the ETag, by weak comparison (RFC 9110 section 13.1.2). */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true;
  const candidates = ifNoneMatch.match(ETAG) ?? [];
  return candidates.some((candidate) => candidate.replace(/^W\//, '') === etag);
}
