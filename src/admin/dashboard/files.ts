/** The dashboard: its document and files, each read when it is first asked for. They hold no data, so they are served without a token. */
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { CACHE_CLASSES } from '../../cache/ttl-policy.ts';
import { pagePolicy, StaticFile } from '../../server/static-file.ts';
import { type AdminRoute, PROBES, ROUTES } from '../../operations/api.ts';
import type { AdminStatus, Endpoint, EndpointContext } from '../endpoint.ts';

interface PageFile {
  /** Below `/dashboard/`. */
  readonly name: string;
  readonly read: () => Buffer;
}

/** The modules of libraries. */
const LIBRARIES: readonly (PageFile & { readonly module: string })[] = [
  ...['preact', 'preact/hooks', 'htm', 'htm/preact'].map((module) => ({
    module,
    name: `${module.replace('/', '-')}.mjs`,
    read: () => readFileSync(new URL(import.meta.resolve(module))),
  })),
  { module: 'uplot', name: 'uplot.mjs', read: () => readChartFile('uPlot.esm.js') },
];
const CHART_STYLE: PageFile = { name: 'uplot.css', read: () => readChartFile('uPlot.min.css') };

/** A file for browsers, which uPlot documents beside its main one. */
function readChartFile(name: string): Buffer {
  return readFileSync(new URL(name, import.meta.resolve('uplot')));
}

/** Inline, because browsers take no import map from a file; the policy below allows exactly this text. */
const IMPORT_MAP = JSON.stringify({
  imports: Object.fromEntries(LIBRARIES.map(({ module, name }) => [module, `./dashboard/${name}`])),
});

const CONTENT_SECURITY_POLICY = pagePolicy(IMPORT_MAP);

const ENDPOINTS = Object.entries<AdminRoute>({ ...PROBES, ...ROUTES });

/** A module that tells the page how to call this gateway. */
const declared = (runbook: string): string =>
  [
    `export const RUNBOOK = ${JSON.stringify(runbook)};`,
    `export const CLASSES = ${JSON.stringify(CACHE_CLASSES)};`,
    `export const ROUTES = ${JSON.stringify(Object.fromEntries(ENDPOINTS.map(([id, { method, path, roles }]) => [id, { method, path, roles }])))};`,
  ].join('\n');

/** `/`, and the files below `/dashboard/` that it loads. */
export function dashboardEndpoints({ runbook }: Pick<AdminStatus, 'runbook'>): readonly Endpoint[] {
  const folder = new URL('../../../src/admin/dashboard/page/', import.meta.url);
  const own = readdirSync(folder).filter((name) => /\.(?:js|css)$/.test(name));
  const files: readonly PageFile[] = [
    { name: 'declared.js', read: () => Buffer.from(declared(runbook)) },
    ...own.map((name) => ({ name, read: () => readFileSync(new URL(name, folder)) })),
    ...LIBRARIES,
    CHART_STYLE,
  ];
  const modules = files.map(({ name }) => name).filter((name) => /\.m?js$/.test(name) && name !== 'theme-boot.js');
  return [
    endpointOf('/', '.html', () => Buffer.from(renderPage(modules))),
    ...files.map(({ name, read }) => endpointOf(`/dashboard/${name}`, extname(name), read)),
  ];
}

/** Browsers keep the files but ask for each at every load, so that nobody sees half of an old page after an update. */
function endpointOf(path: string, type: string, read: () => Buffer): Endpoint {
  let file: StaticFile | null = null;
  const handle = async (ctx: EndpointContext): Promise<void> => {
    ctx.set({ 'Content-Security-Policy': CONTENT_SECURITY_POLICY, Vary: 'Accept-Encoding' });
    file ??= new StaticFile(type, read());
    await file.send(ctx, 'private, no-cache');
  };
  return { route: { method: 'GET', path, roles: null, summary: 'a file of the dashboard', answer: null }, handle };
}

const ICON =
  'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 16 16%22%3E%3Crect width=%2216%22 height=%2216%22 rx=%223%22 fill=%22%231c2733%22/%3E%3Cpath d=%22M3 11.500V8m3.300 3.500V4.500m3.400 7V6.500m3.300 5v-3%22 stroke=%22%2347a3f7%22 stroke-width=%222%22 stroke-linecap=%22round%22/%3E%3C/svg%3E';

/**
 * The document: the files that it loads, and the list of endpoints. Scripts make everything else. `modules` are loaded ahead,
 * not one import after the other. All addresses are relative, so that the page works behind a prefix.
 */
function renderPage(modules: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>evalgate</title>
<link rel="icon" href="${ICON}">
<script src="dashboard/theme-boot.js"></script>
<link rel="stylesheet" href="dashboard/uplot.css">
<link rel="stylesheet" href="dashboard/style.css">
<script type="importmap">${IMPORT_MAP}</script>
${modules.map((name) => `<link rel="modulepreload" href="dashboard/${name}">`).join('\n')}
<script type="module" src="dashboard/app.js"></script>
</head>
<body>
<div id="app"></div>
<svg id="probe" class="hidden" aria-hidden="true"></svg>
<noscript><p>The dashboard needs JavaScript. The command line does the same (evalgate cache, evalgate keys), and so do the endpoints below.</p></noscript>
<details id="endpoints" class="endpoints">
<summary>Endpoints of this listener</summary>
<p>Bodies are JSON. If ADMIN_TOKEN is set, all but /, /dashboard/, /livez and /readyz need the header <code>Authorization: Bearer &lt;token&gt;</code>.</p>
<table>
<thead><tr><th scope="col">Method</th><th scope="col">Path</th><th scope="col">What it does</th></tr></thead>
<tbody>
${ENDPOINTS.map(([, route]) => row(route)).join('\n')}
</tbody>
</table>
</details>
<div id="announcements" class="hidden" role="status" aria-live="polite"></div>
</body>
</html>
`;
}

function row({ method, path, summary }: AdminRoute): string {
  return `<tr><td>${method}</td><td><code>${escaped(path)}</code></td><td>${escaped(summary)}</td></tr>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
