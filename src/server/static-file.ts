/** A file that a listener serves: named by its ETag, compressed once, at the first request that takes it compressed. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const compress = promisify(gzip);

/** The part of a request's context that a file needs; Koa's has it. */
interface FileContext {
  status: number;
  type: string;
  body: unknown;
  /** Whether the client has the file of the ETag that was set. */
  readonly fresh: boolean;
  set(fields: Readonly<Record<string, string>>): void;
  set(field: string, value: string): void;
  acceptsEncodings(...encodings: string[]): string | false;
}

export class StaticFile {
  readonly #extension: string;
  readonly #bytes: Buffer;
  readonly #hash: string;
  #gzipped: Promise<Buffer> | undefined;

  /** `extension`: as in the file's name, such as `.css`. */
  constructor(extension: string, bytes: Buffer) {
    this.#extension = extension;
    this.#bytes = bytes;
    this.#hash = hashOf(bytes);
  }

  /** Answers with the file, or with 304 if the client has it. `Vary` is left to the caller. */
  async send(ctx: FileContext, cacheControl: string): Promise<void> {
    const isCoded = this.#extension !== '.png' && ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
    ctx.status = 200;
    ctx.set({ ETag: isCoded ? `"${this.#hash}-gzip"` : `"${this.#hash}"`, 'Cache-Control': cacheControl });
    if (ctx.fresh) {
      ctx.status = 304;
      return;
    }
    ctx.type = this.#extension;
    if (isCoded) ctx.set('Content-Encoding', 'gzip');
    ctx.body = isCoded ? await (this.#gzipped ??= compress(this.#bytes)) : this.#bytes;
  }
}

/** The Content-Security-Policy of a page that loads only from its own server. `inline`: the one script that it may hold. */
export function pagePolicy(inline: string | null = null): string {
  const inlineSource = inline === null ? '' : ` 'sha256-${createHash('sha256').update(inline).digest('base64')}'`;
  return `default-src 'none'; script-src 'self'${inlineSource}; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

/** Names bytes in an ETag. */
export function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 27);
}
