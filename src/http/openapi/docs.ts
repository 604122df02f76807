/** `/openapi.json`, and a page that shows it at `/docs`; neither needs a key (A1). */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { Router } from '@koa/router';
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

/** The page's own files have relative addresses, so that a prefix in front of the gateway does no harm. */
const FILES = [
  { path: '/docs', type: 'text/html', from: './page/index.html', cacheControl: REVALIDATE },
  { path: '/docs/page.css', type: 'text/css', from: './page/page.css', cacheControl: REVALIDATE },
  { path: '/docs/page.js', type: 'text/javascript', from: './page/page.js', cacheControl: REVALIDATE },
  { path: '/docs/swagger-ui.css', type: 'text/css', from: 'swagger-ui-dist/swagger-ui.css', cacheControl: ONE_HOUR },
  {
    path: '/docs/swagger-ui-bundle.js',
    type: 'text/javascript',
    from: 'swagger-ui-dist/swagger-ui-bundle.js',
    cacheControl: ONE_HOUR,
  },
  {
    path: '/docs/favicon-32x32.png',
    type: 'image/png',
    from: 'swagger-ui-dist/favicon-32x32.png',
    cacheControl: ONE_HOUR,
  },
] as const;

interface File {
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
  readonly hash: string;
}

/** `document` gives the document in force; it is written out once for each object that it returns. */
export function docsRouter(document: () => Promise<OpenApiDocument>): Router<RequestState> {
  const router = new Router<RequestState>({ strict: true, sensitive: true });
  const written = new WeakMap<OpenApiDocument, File>();

  router.get('/openapi.json', async (ctx) => {
    const current = await document();
    const file = written.get(current) ?? fileOf(Buffer.from(JSON.stringify(current)));
    written.set(current, file);
    sendFile(ctx, file, 'application/json; charset=utf-8', REVALIDATE);
  });
  for (const { path, type, from, cacheControl } of FILES) {
    // Read when it is first asked for: most processes never are.
    let file: File | null = null;
    router.get(path, (ctx) => {
      file ??= fileOf(readFileSync(new URL(import.meta.resolve(from))));
      ctx.state.headers.push({ 'Content-Security-Policy': PAGE_CONTENT_SECURITY_POLICY });
      sendFile(ctx, file, type === 'image/png' ? type : `${type}; charset=utf-8`, cacheControl);
    });
  }
  return router;
}

function fileOf(bytes: Buffer): File {
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 27);
  return { bytes, gzipped: gzipSync(bytes), hash };
}

function sendFile(ctx: Context, { bytes, gzipped, hash }: File, type: string, cacheControl: string): void {
  const isCoded = type !== 'image/png' && ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
  ctx.status = 200;
  ctx.set({ ETag: isCoded ? `"${hash}-gzip"` : `"${hash}"`, 'Cache-Control': cacheControl });
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  if (isCoded) ctx.set('Content-Encoding', 'gzip');
  ctx.type = type;
  ctx.body = isCoded ? gzipped : bytes;
}
