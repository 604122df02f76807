/** `/openapi.json`, and a page that shows it at `/docs`; neither needs a key (A1). */
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Router } from '@koa/router';
import { hashOf } from '../respond.ts';
import type { Context, RequestState } from '../state.ts';
import type { OpenApiDocument } from './document.ts';

/** Anyone may keep it, but has to revalidate it on each use. */
const REVALIDATE = 'public, no-cache';
/** Files of a package change with a release. */
const ONE_HOUR = 'public, max-age=3600';

/** The page may load only from this server, and holds no script or style of its own. */
const PAGE_CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** By path. The page's own files have relative addresses, so that a prefix in front of the gateway does no harm. */
const FILES = {
  '/docs': './page/index.html',
  '/docs/page.css': './page/page.css',
  '/docs/page.js': './page/page.js',
  '/docs/swagger-ui.css': 'swagger-ui-dist/swagger-ui.css',
  '/docs/swagger-ui-bundle.js': 'swagger-ui-dist/swagger-ui-bundle.js',
  '/docs/favicon-32x32.png': 'swagger-ui-dist/favicon-32x32.png',
} as const;

interface File {
  /** As in a file's name: `.css`. */
  readonly extension: string;
  readonly bytes: Buffer;
  /** Null for what gains nothing by it. */
  readonly gzipped: Buffer | null;
  readonly hash: string;
}

/** `document` gives the document in force; it is written out once for each object that it returns. */
export function docsRouter(document: () => Promise<OpenApiDocument>): Router<RequestState> {
  const router = new Router<RequestState>({ strict: true, sensitive: true });
  const written = new WeakMap<OpenApiDocument, File>();

  router.get('/openapi.json', async (ctx) => {
    const current = await document();
    const file = written.get(current) ?? fileOf('.json', Buffer.from(JSON.stringify(current)));
    written.set(current, file);
    sendFile(ctx, file, REVALIDATE);
  });
  for (const [path, from] of Object.entries(FILES)) {
    // Read when it is first asked for: most processes never are.
    let file: File | null = null;
    router.get(path, (ctx) => {
      file ??= fileOf(extname(from), readFileSync(new URL(import.meta.resolve(from))));
      ctx.state.headers.push({ 'Content-Security-Policy': PAGE_CONTENT_SECURITY_POLICY });
      sendFile(ctx, file, from.startsWith('.') ? REVALIDATE : ONE_HOUR);
    });
  }
  return router;
}

function fileOf(extension: string, bytes: Buffer): File {
  return { extension, bytes, gzipped: extension === '.png' ? null : gzipSync(bytes), hash: hashOf(bytes) };
}

function sendFile(ctx: Context, { extension, bytes, gzipped, hash }: File, cacheControl: string): void {
  const coded = ctx.acceptsEncodings('gzip', 'identity') === 'gzip' ? gzipped : null;
  ctx.status = 200;
  ctx.set({ ETag: coded === null ? `"${hash}"` : `"${hash}-gzip"`, 'Cache-Control': cacheControl });
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  if (coded !== null) ctx.set('Content-Encoding', 'gzip');
  ctx.type = extension;
  ctx.body = coded ?? bytes;
}
