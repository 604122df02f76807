/** The dashboard's files, read once at start. They hold no data, so they are served without a token. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { EndpointContext } from '../context.ts';
import type { Endpoint } from '../endpoint.ts';
import { renderPage } from './page.ts';

const compress = promisify(gzip);

/** Only this server may be asked for anything, and no script or style may stand in the page itself. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const TYPES = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
} as const;

/** Run before the others, as classic scripts: the page's own modules come after them. */
const THEME_SCRIPT = 'theme-boot.js';
const CHART_LIBRARY = 'uPlot.iife.min.js';
const CHART_STYLE = 'uPlot.min.css';

interface File {
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

/** `/`, and the files below `/dashboard/` that it loads. The page lists `listed` at its end. Throws if a file is missing. */
export function dashboardEndpoints(listed: readonly Endpoint[]): readonly Endpoint[] {
  const files = [...ownFiles(), ...libraryFiles()];
  const named = (suffix: string): readonly string[] =>
    files.map(({ name }) => name).filter((name) => name.endsWith(suffix));
  const scripts = [THEME_SCRIPT, CHART_LIBRARY];
  const html = renderPage({
    styles: [CHART_STYLE, ...named('.css').filter((name) => name !== CHART_STYLE)],
    scripts,
    modules: named('.js').filter((name) => !scripts.includes(name)),
    endpoints: listed,
  });
  const page = endpointOf('/', { name: 'the dashboard', type: TYPES.html, bytes: Buffer.from(html) });
  return [page, ...files.map((file) => endpointOf(`/dashboard/${file.name}`, file))];
}

/** In the order of their names, so that style sheets are numbered by what they lay over what. */
function ownFiles(): readonly File[] {
  const folder = new URL('page/', import.meta.url);
  return readdirSync(folder)
    .filter((name) => name.endsWith('.js') || name.endsWith('.css'))
    .toSorted()
    .map((name) => fileAt(name, new URL(name, folder)));
}

function libraryFiles(): readonly File[] {
  return [
    fileAt(CHART_LIBRARY, new URL(import.meta.resolve('uplot/dist/uPlot.iife.min.js'))),
    fileAt(CHART_STYLE, new URL(import.meta.resolve('uplot/dist/uPlot.min.css'))),
  ];
}

function fileAt(name: string, url: URL): File {
  return { name, type: name.endsWith('.css') ? TYPES.css : TYPES.js, bytes: readFileSync(url) };
}

function endpointOf(path: string, { name, type, bytes }: File): Endpoint {
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`;
  let compressed: Promise<Buffer> | undefined;
  const gzipped = (): Promise<Buffer> => (compressed ??= compress(bytes));
  return { method: 'GET', path, what: name, handle: (ctx) => send(ctx, { etag, type, bytes, gzipped }) };
}

interface Sendable {
  readonly etag: string;
  readonly type: string;
  readonly bytes: Buffer;
  readonly gzipped: () => Promise<Buffer>;
}

/** Kept by the browser, but asked about at each use: after an update nobody sees half of an old page. */
async function send(ctx: EndpointContext, { etag, type, bytes, gzipped }: Sendable): Promise<void> {
  ctx.status = 200;
  ctx.set({
    'Cache-Control': 'private, no-cache',
    'Content-Security-Policy': CONTENT_SECURITY_POLICY,
    ETag: `W/${etag}`,
    Vary: 'Accept-Encoding',
  });
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  ctx.type = type;
  if (ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') {
    ctx.body = bytes;
    return;
  }
  ctx.set('Content-Encoding', 'gzip');
  ctx.body = await gzipped();
}
