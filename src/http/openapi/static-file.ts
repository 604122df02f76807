/** A file that is served as it is: its bytes, their codings, and what caches need to know of them. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Answer } from '../answer.ts';
import { matchesEtag } from '../conditional.ts';
import { fieldLine, fieldLines } from '../head.ts';
import type { Context } from '../state.ts';

const compress = promisify(gzip);

export interface StaticFileOptions {
  readonly bytes: Buffer;
  /** The media type, with its charset where it is text. */
  readonly type: string;
  readonly cacheControl: string;
  /** Whether a coding makes it smaller. */
  readonly isCompressible: boolean;
}

export class StaticFile {
  readonly #options: StaticFileOptions;
  readonly #hash: string;
  #compressed: Promise<Buffer> | undefined;

  constructor(options: StaticFileOptions) {
    this.#options = options;
    this.#hash = createHash('sha256').update(options.bytes).digest('base64url').slice(0, 27);
  }

  /** The answer to a GET or HEAD: 200 or, where `If-None-Match` names these bytes, 304. */
  async answer(ctx: Context): Promise<Answer> {
    const { bytes, type, cacheControl, isCompressible } = this.#options;
    const isCoded = isCompressible && ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
    const etag = isCoded ? `"${this.#hash}-gzip"` : `"${this.#hash}"`;
    const validators = fieldLines({ ETag: etag, 'Cache-Control': cacheControl });
    if (matchesEtag(ctx.get('If-None-Match'), etag)) return { status: 304, fields: validators, body: null };
    const coding = isCoded ? fieldLine('Content-Encoding', 'gzip') : '';
    const fields = validators + coding + fieldLine('Content-Type', type);
    return { status: 200, fields, body: isCoded ? await this.#gzipped() : bytes };
  }

  #gzipped(): Promise<Buffer> {
    this.#compressed ??= compress(this.#options.bytes);
    return this.#compressed;
  }
}
