/** Serves the OpenAPI document at `/openapi.json` and a page that shows it at `/docs`, both without a key (A1). */
import { accessSync, readFileSync } from 'node:fs';
import type { Answer } from '../answer.ts';
import { methodNotAllowed } from '../layers/no-endpoint.ts';
import { replacePolicy } from '../layers/request-context.ts';
import type { Context } from '../state.ts';
import { DOCS_CONTENT_SECURITY_POLICY, DOCS_PAGE, DOCS_SCRIPT, DOCS_STYLE } from './docs-page.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { OpenApiDocument } from './document.ts';
import { StaticFile } from './static-file.ts';

export interface DocsOptions {
  /** The document as it stands now. It is written out once for each object that this returns. */
  readonly document: () => MaybePromise<OpenApiDocument>;
}

/** Kept by anyone, but asked about at each use. */
const REVALIDATE = 'public, no-cache';
/** Files of a package: they change with a release. */
const ONE_HOUR = 'public, max-age=3600';
const TYPES = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
} as const;

/** Answers `/openapi.json`, `/docs` and what lies below it; null for everything else. Throws where a file is missing. */
export function createDocs(options: DocsOptions): (ctx: Context) => Promise<Answer | null> {
  const written = new WeakMap<OpenApiDocument, StaticFile>();
  const pages = docsFiles();
  const fileAt = async (path: string): Promise<StaticFile | undefined> => {
    if (path !== '/openapi.json') return pages.get(path)?.();
    const document = await options.document();
    const file = written.get(document) ?? documentFile(document);
    written.set(document, file);
    return file;
  };
  return async (ctx) => {
    const file = await fileAt(ctx.path);
    if (file === undefined) return null;
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed(ctx.method);
    if (ctx.path !== '/openapi.json') replacePolicy(ctx, DOCS_CONTENT_SECURITY_POLICY);
    return await file.answer(ctx);
  };
}

function documentFile(document: OpenApiDocument): StaticFile {
  return textFile(JSON.stringify(document), 'application/json; charset=utf-8')();
}

/** Read when they are first asked for: most processes never are. */
function docsFiles(): ReadonlyMap<string, () => StaticFile> {
  return new Map([
    ['/docs', textFile(DOCS_PAGE, TYPES.html)],
    ['/docs/page.css', textFile(DOCS_STYLE, TYPES.css)],
    ['/docs/page.js', textFile(DOCS_SCRIPT, TYPES.js)],
    ['/docs/swagger-ui.css', packageFile(import.meta.resolve('swagger-ui-dist/swagger-ui.css'), TYPES.css)],
    ['/docs/swagger-ui-bundle.js', packageFile(import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'), TYPES.js)],
    ['/docs/favicon-32x32.png', packageFile(import.meta.resolve('swagger-ui-dist/favicon-32x32.png'), 'image/png')],
  ]);
}

function textFile(text: string, type: string): () => StaticFile {
  return once(() => {
    const bytes = Buffer.from(text);
    return new StaticFile({ bytes, type, cacheControl: REVALIDATE, isCompressible: true });
  });
}

function packageFile(url: string, type: string): () => StaticFile {
  const file = new URL(url);
  accessSync(file);
  return once(() => {
    const bytes = readFileSync(file);
    return new StaticFile({ bytes, type, cacheControl: ONE_HOUR, isCompressible: type !== 'image/png' });
  });
}

function once(make: () => StaticFile): () => StaticFile {
  let made: StaticFile | null = null;
  return () => (made ??= make());
}
