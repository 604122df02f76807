/** The bytes of a public answer: rendered once an entry, compressed once a coding, named by their ETag. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib';
import type { MaybePromise } from '../maybe-promise.ts';
import { type Body, bytesOf, toBody } from './body.ts';

/** RFC 9110 content codings that are offered, the preferred one first. */
export const CODINGS = ['br', 'zstd', 'gzip'] as const;
export type Coding = (typeof CODINGS)[number];

/** Below this a coding saves less than its header costs. */
const MIN_CODED_BYTES = 1024;
/** What one takes beside its bytes. Measured, rounded up. */
const OVERHEAD_BYTES = 600;
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
  readonly #identity: Body;
  readonly #hash: string;
  readonly #coded = new Map<Coding, MaybePromise<Body>>();

  constructor(value: object) {
    const bytes = Buffer.from(JSON.stringify(value));
    this.#identity = toBody(bytes);
    this.#hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 27);
  }

  /** What the representation may come to hold, its codings included. */
  get weightBytes(): number {
    return OVERHEAD_BYTES + 2 * this.#identity.length;
  }

  /** Whether a coding is worth having at all. */
  get isCompressible(): boolean {
    return this.#identity.length >= MIN_CODED_BYTES;
  }

  /** A strong validator: it names the bytes and their coding (RFC 9110 section 8.8.3). */
  etag(coding: Coding | null): string {
    return coding === null ? `"${this.#hash}"` : `"${this.#hash}-${coding}"`;
  }

  body(coding: Coding | null): MaybePromise<Body> {
    if (coding === null) return this.#identity;
    return this.#coded.get(coding) ?? this.#code(coding);
  }

  /** Once, however many readers wait for it. */
  #code(coding: Coding): Promise<Body> {
    const made = compressors[coding](bytesOf(this.#identity)).then((bytes) => {
      const kept = toBody(bytes);
      this.#coded.set(coding, kept);
      return kept;
    });
    this.#coded.set(coding, made);
    return made;
  }
}
