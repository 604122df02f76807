/** The bytes of a public answer: rendered once an entry, compressed once a coding, named by their ETag. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib';

/** RFC 9110 content codings that are offered, the preferred one first. */
export const CODINGS = ['br', 'zstd', 'gzip'] as const;
export type Coding = (typeof CODINGS)[number];

/** Below this a coding saves less than its header costs. */
const MIN_CODED_BYTES = 1024;
/** Middling effort: an answer is compressed once, while a reader waits. */
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
  readonly identity: Buffer;
  readonly #hash: string;
  readonly #coded = new Map<Coding, Promise<Buffer>>();

  constructor(value: object) {
    this.identity = Buffer.from(JSON.stringify(value));
    this.#hash = createHash('sha256').update(this.identity).digest('base64url').slice(0, 27);
  }

  /** What the representation may come to hold, its codings included. */
  get weightBytes(): number {
    return 2 * this.identity.length;
  }

  /** Whether a coding is worth having at all. */
  get isCompressible(): boolean {
    return this.identity.length >= MIN_CODED_BYTES;
  }

  /** A strong validator: it names the bytes and their coding (RFC 9110 section 8.8.3). */
  etag(coding: Coding | null): string {
    return coding === null ? `"${this.#hash}"` : `"${this.#hash}-${coding}"`;
  }

  bytes(coding: Coding | null): Buffer | Promise<Buffer> {
    if (coding === null) return this.identity;
    const known = this.#coded.get(coding);
    if (known !== undefined) return known;
    const made = compressors[coding](this.identity);
    this.#coded.set(coding, made);
    return made;
  }
}
