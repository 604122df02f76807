/** `/openapi.json`, a page that shows it at `/docs`, and the way there from `/` (A1: none needs a key, or counts). */
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { Router } from '@koa/router';
import { pagePolicy, StaticFile } from '../../server/static-file.ts';
import type { Middleware, RequestState } from '../state.ts';

/** Anyone may keep it, but has to revalidate it on each use. */
const REVALIDATE = 'public, no-cache';
/** Files of a package change with a release. */
const ONE_HOUR = 'public, max-age=3600';

/** By path. The page's own files have relative addresses, so that a prefix in front of the gateway does no harm. */
const FILES = {
  '/docs': './page/index.html',
  '/docs/page.css': './page/page.css',
  '/docs/page.js': './page/page.js',
  '/docs/swagger-ui.css': 'swagger-ui-dist/swagger-ui.css',
  '/docs/swagger-ui-bundle.js': 'swagger-ui-dist/swagger-ui-bundle.js',
  '/docs/favicon-32x32.png': 'swagger-ui-dist/favicon-32x32.png',
} as const;

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
  for (const [path, from] of Object.entries(FILES)) {
    // Read when it is first asked for: most processes never are.
    let file: StaticFile | null = null;
    router.get(path, enter, async (ctx) => {
      file ??= new StaticFile(extname(from), readFileSync(new URL(import.meta.resolve(from))));
      ctx.state.headers.push({ 'Content-Security-Policy': pagePolicy() });
      await file.send(ctx, from.startsWith('.') ? REVALIDATE : ONE_HOUR);
    });
  }
}
