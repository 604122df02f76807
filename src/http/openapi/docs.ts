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

/** Relative addresses, so that a prefix in front of the gateway does no harm. */
const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>evalgate API reference</title>
    <link rel="icon" type="image/png" href="docs/favicon-32x32.png">
    <link rel="stylesheet" href="docs/swagger-ui.css">
    <link rel="stylesheet" href="docs/page.css">
  </head>
  <body>
    <noscript>This page needs JavaScript. The reference as a file: <a href="openapi.json">openapi.json</a>.</noscript>
    <main id="reference"></main>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/page.js"></script>
  </body>
</html>
`;

const STYLE = `body { margin: 0; }
`;

/** Keys typed into the page are held by it only while it is open. */
const SCRIPT = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null,
});
`;

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
  serve(router, '/docs', { type: 'text/html; charset=utf-8', read: () => Buffer.from(PAGE) });
  serve(router, '/docs/page.css', { type: 'text/css; charset=utf-8', read: () => Buffer.from(STYLE) });
  serve(router, '/docs/page.js', { type: 'text/javascript; charset=utf-8', read: () => Buffer.from(SCRIPT) });
  for (const [name, type] of [
    ['swagger-ui.css', 'text/css; charset=utf-8'],
    ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
    ['favicon-32x32.png', 'image/png'],
  ] as const) {
    const read = (): Buffer => readFileSync(new URL(import.meta.resolve(`swagger-ui-dist/${name}`)));
    serve(router, `/docs/${name}`, { type, read, cacheControl: ONE_HOUR });
  }
  return router;
}

interface Served {
  readonly type: string;
  readonly read: () => Buffer;
  readonly cacheControl?: string;
}

/** Read when it is first asked for: most processes never are. */
function serve(router: Router<RequestState>, path: string, { type, read, cacheControl = REVALIDATE }: Served): void {
  let file: File | null = null;
  router.get(path, (ctx) => {
    file ??= fileOf(read());
    ctx.state.headers.push({ 'Content-Security-Policy': PAGE_CONTENT_SECURITY_POLICY });
    sendFile(ctx, file, type, cacheControl);
  });
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
