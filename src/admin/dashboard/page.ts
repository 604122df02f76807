/** The dashboard's document: what it loads, and the list of endpoints. Its scripts make everything else. */
import type { AdminRoute } from '../api.ts';

export interface PageParts {
  /** Names of files below `/dashboard/`. They are loaded ahead, not one import after the other. */
  readonly modules: readonly string[];
  /** The text of the import map, which resolves the libraries' names. */
  readonly importMap: string;
  readonly endpoints: readonly AdminRoute[];
}

const ICON =
  'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 16 16%22%3E%3Crect width=%2216%22 height=%2216%22 rx=%223%22 fill=%22%231c2733%22/%3E%3Cpath d=%22M3 11.500V8m3.300 3.500V4.500m3.400 7V6.500m3.300 5v-3%22 stroke=%22%2347a3f7%22 stroke-width=%222%22 stroke-linecap=%22round%22/%3E%3C/svg%3E';

/** All addresses are relative, so that the page works behind a prefix. */
export function renderPage({ modules, importMap, endpoints }: PageParts): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>evalgate</title>
<link rel="icon" href="${ICON}">
<script src="dashboard/theme-boot.js"></script>
<link rel="stylesheet" href="dashboard/style.css">
<script type="importmap">${importMap}</script>
${modules.map((name) => `<link rel="modulepreload" href="dashboard/${name}">`).join('\n')}
<script type="module" src="dashboard/app.js"></script>
</head>
<body>
<div id="app"></div>
<noscript><p>The dashboard needs JavaScript. The command line does the same (evalgate cache, evalgate keys), and so do the endpoints below.</p></noscript>
<details id="endpoints" class="endpoints">
<summary>Endpoints of this listener</summary>
<p>Bodies are JSON. If ADMIN_TOKEN is set, all but /, /dashboard/, /livez and /readyz need the header <code>Authorization: Bearer &lt;token&gt;</code>.</p>
<table>
<thead><tr><th scope="col">Method</th><th scope="col">Path</th><th scope="col">What it does</th></tr></thead>
<tbody>
${endpoints.map(row).join('\n')}
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

const REFERENCES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => REFERENCES[character] ?? character);
}
