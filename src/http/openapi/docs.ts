/** `/openapi.json`, a page that shows it at `/docs`, and the way there from `/` (A1: none needs a key, or counts). */
import { existsSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { Router } from '@koa/router';
import { pagePolicy, StaticFile } from '../../server/static-file.ts';
import type { Middleware, RequestState } from '../state.ts';

/** Anyone may keep it, but has to revalidate it on each use. */
const REVALIDATE = 'public, no-cache';
/** Files of a package change with a release. */
const ONE_HOUR = 'public, max-age=3600';

/**
 * The page's own files, which no build changes. They have relative addresses, so that a prefix in front of the gateway does no harm.
 */
const PAGE = new URL('../../../src/http/openapi/page/', import.meta.url);
/** A published package ships the files of Swagger UI that it serves; a checkout has the whole of Swagger UI. */
const SHIPPED = new URL('../../swagger-ui/', import.meta.url);
const SWAGGER_UI = existsSync(SHIPPED) ? SHIPPED : new URL('.', import.meta.resolve('swagger-ui-dist/swagger-ui.css'));

const FILES = [
  { path: '/docs', folder: PAGE, name: 'index.html', cacheControl: REVALIDATE },
  { path: '/docs/page.css', folder: PAGE, name: 'page.css', cacheControl: REVALIDATE },
  { path: '/docs/page.js', folder: PAGE, name: 'page.js', cacheControl: REVALIDATE },
  { path: '/docs/swagger-ui.css', folder: SWAGGER_UI, name: 'swagger-ui.css', cacheControl: ONE_HOUR },
  { path: '/docs/swagger-ui-bundle.js', folder: SWAGGER_UI, name: 'swagger-ui-bundle.js', cacheControl: ONE_HOUR },
  { path: '/docs/favicon-32x32.png', folder: SWAGGER_UI, name: 'favicon-32x32.png', cacheControl: ONE_HOUR },
] as const;

/**
 * `enter` is in front of each page. `document` gives the document in force; it is written out once for each object that it
 * returns.
 */
export function addDocs(router: Router<RequestState>, enter: Middleware, document: () => Promise<object>): void {
  const written = new WeakMap<object, StaticFile>();

  router.get('/', enter, (ctx) => {
    ctx.set('Cache-Control', 'no-store');
    ctx.redirect('/docs');
  });
  router.get('/openapi.json', enter, async (ctx) => {
    const current = await document();
    const file = written.get(current) ?? new StaticFile('.json', Buffer.from(JSON.stringify(current)));
    written.set(current, file);
    await file.send(ctx, REVALIDATE);
  });
  for (const { path, folder, name, cacheControl } of FILES) {
    // Read when it is first asked for: most processes never are.
    let file: StaticFile | null = null;
    router.get(path, enter, async (ctx) => {
      file ??= new StaticFile(extname(name), readFileSync(new URL(name, folder)));
      ctx.state.headers.push({ 'Content-Security-Policy': pagePolicy() });
      await file.send(ctx, cacheControl);
    });
  }
}
