/** A file that is served as it is: its bytes, their codings, and what caches need to know of them. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { matchesEtag } from '../conditional.ts';
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

  /** Answers a GET or HEAD with 200 or, where `If-None-Match` names these bytes, with 304. */
  async send(ctx: Context): Promise<void> {
    const { bytes, type, cacheControl, isCompressible } = this.#options;
    const isCoded = isCompressible && ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
    const etag = isCoded ? `"${this.#hash}-gzip"` : `"${this.#hash}"`;
    ctx.set('ETag', etag);
    ctx.set('Cache-Control', cacheControl);
    ctx.set('X-Content-Type-Options', 'nosniff');
    ctx.vary('Accept-Encoding');
    if (matchesEtag(ctx.get('If-None-Match'), etag)) {
      ctx.status = 304;
      return;
    }
    const body = isCoded ? await this.#gzipped() : bytes;
    if (isCoded) ctx.set('Content-Encoding', 'gzip');
    ctx.status = 200;
    ctx.type = type;
    ctx.body = body;
  }

  #gzipped(): Promise<Buffer> {
    this.#compressed ??= compress(this.#options.bytes);
    return this.#compressed;
  }
}
