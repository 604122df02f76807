/** The dashboard's files, read once at start. They hold no data, so they are served without a token. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { AdminRoute } from '../api.ts';
import type { Endpoint, EndpointContext } from '../endpoint.ts';
import { renderPage } from './page.ts';

const compress = promisify(gzip);

/** By the name under which modules import it: the library's file, and its name below `/dashboard/`. */
const LIBRARIES = {
  preact: { file: import.meta.resolve('preact'), name: 'preact.mjs' },
  'preact/hooks': { file: import.meta.resolve('preact/hooks'), name: 'preact-hooks.mjs' },
  htm: { file: import.meta.resolve('htm'), name: 'htm.mjs' },
  'htm/preact': { file: import.meta.resolve('htm/preact'), name: 'htm-preact.mjs' },
};

/** Inline, because browsers take no import map from a file; the policy below allows exactly this text. */
const IMPORT_MAP = JSON.stringify({
  imports: Object.fromEntries(Object.entries(LIBRARIES).map(([module, { name }]) => [module, `./dashboard/${name}`])),
});

/** Only this server is called, and the page itself holds no script but the import map, and no style. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${createHash('sha256').update(IMPORT_MAP).digest('base64')}'`,
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

interface File {
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

/** `/`, and the files below `/dashboard/` that it loads. The page lists `listed` at its end. Throws if a file is missing. */
export function dashboardEndpoints(listed: readonly AdminRoute[]): readonly Endpoint[] {
  const folder = new URL('page/', import.meta.url);
  const own = readdirSync(folder).filter((name) => name.endsWith('.js') || name.endsWith('.css'));
  const files = [
    ...own.map((name) => fileAt(name, new URL(name, folder))),
    ...Object.values(LIBRARIES).map(({ name, file }) => fileAt(name, new URL(file))),
  ];
  const modules = files.map(({ name }) => name).filter((name) => /\.m?js$/.test(name) && name !== 'theme-boot.js');
  const html = renderPage({ modules, importMap: IMPORT_MAP, endpoints: listed });
  const page = endpointOf('/', { name: 'the dashboard', type: TYPES.html, bytes: Buffer.from(html) });
  return [page, ...files.map((file) => endpointOf(`/dashboard/${file.name}`, file))];
}

function fileAt(name: string, url: URL): File {
  return { name, type: name.endsWith('.css') ? TYPES.css : TYPES.js, bytes: readFileSync(url) };
}

/** Browsers keep the files but ask for each at every load, so that nobody sees half of an old page after an update. */
function endpointOf(path: string, { name, type, bytes }: File): Endpoint {
  const etag = createHash('sha256').update(bytes).digest('base64url').slice(0, 27);
  let compressed: Promise<Buffer> | undefined;
  const handle = async (ctx: EndpointContext): Promise<void> => {
    ctx.status = 200;
    ctx.set({
      'Cache-Control': 'private, no-cache',
      'Content-Security-Policy': CONTENT_SECURITY_POLICY,
      ETag: `W/"${etag}"`,
      Vary: 'Accept-Encoding',
    });
    if (ctx.fresh) {
      ctx.status = 304;
      return;
    }
    ctx.type = type;
    if (ctx.acceptsEncodings('gzip', 'identity') === 'gzip') {
      ctx.set('Content-Encoding', 'gzip');
      ctx.body = await (compressed ??= compress(bytes));
    } else {
      ctx.body = bytes;
    }
  };
  return { route: { method: 'GET', path, summary: name, answer: null }, handle };
}
