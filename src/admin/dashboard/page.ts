/** The dashboard's document: its landmarks, what it loads, and the list of endpoints. Everything else its scripts make. */
import type { Endpoint } from '../endpoint.ts';

type Listed = Pick<Endpoint, 'method' | 'path' | 'what'>;

export interface PageParts {
  /** Names of files below `/dashboard/`. */
  readonly styles: readonly string[];
  /** Classic scripts, run in this order before the modules. */
  readonly scripts: readonly string[];
  /** Loaded ahead all at once: one would else only be known of when the one that imports it has arrived. */
  readonly modules: readonly string[];
  readonly endpoints: readonly Listed[];
}

const ICON =
  'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 16 16%22%3E%3Crect width=%2216%22 height=%2216%22 rx=%223%22 fill=%22%231c2733%22/%3E%3Cpath d=%22M3 11.500V8m3.300 3.500V4.500m3.400 7V6.500m3.300 5v-3%22 stroke=%22%2347a3f7%22 stroke-width=%222%22 stroke-linecap=%22round%22/%3E%3C/svg%3E';

const SECTIONS = [
  ['now', 'Now'],
  ['hour', 'Last hour'],
  ['what-if', 'What if'],
  ['times', 'Times'],
  ['misses', 'Misses'],
  ['top', 'Top load'],
  ['maintenance', 'Maintenance'],
  ['purge', 'Purge'],
  ['explain', 'Explain'],
  ['keys', 'Keys'],
  ['audit', 'Audit'],
  ['fleet', 'Fleet'],
] as const;

/** All addresses are relative, so that a prefix in front does no harm. */
export function renderPage({ styles, scripts, modules, endpoints }: PageParts): string {
  const lines = [
    ...scripts.map((name) => `<script src="dashboard/${name}"></script>`),
    ...styles.map((name) => `<link rel="stylesheet" href="dashboard/${name}">`),
    ...modules.map((name) => `<link rel="modulepreload" href="dashboard/${name}">`),
  ];
  const links = SECTIONS.map(([id, name]) => `<li><a href="#${id}">${name}</a></li>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>evalgate</title>
<link rel="icon" href="${ICON}">
${lines.join('\n')}
<script type="module" src="dashboard/main.js"></script>
</head>
<body>
<a class="skip" href="#sections">Skip to the numbers</a>
<header class="top">
<h1>evalgate</h1>
<nav aria-label="Sections"><ul>
${links.join('\n')}
<li><a href="#endpoints">Endpoints</a></li>
</ul></nav>
<div id="tools" class="tools"></div>
</header>
<main>
<div id="state" class="state"></div>
<noscript><p>The dashboard needs JavaScript. The same can be done with the command line (evalgate cache, evalgate keys) and with the endpoints below.</p></noscript>
<div id="sections" class="sections" tabindex="-1"></div>
<details id="endpoints" class="endpoints">
<summary><h2>Endpoints of this listener</h2></summary>
<p>For operators and their tools. Bodies are JSON. Where ADMIN_TOKEN is set, all but /, /dashboard/, /livez and /readyz need the header <code>Authorization: Bearer &lt;token&gt;</code>.</p>
<div class="scroll"><table class="dense">
<thead><tr><th scope="col">Method</th><th scope="col">Path</th><th scope="col">What it does</th></tr></thead>
<tbody>
${endpoints.map(row).join('\n')}
</tbody>
</table></div>
</details>
</main>
<div id="announcements" class="hidden" role="status" aria-live="polite"></div>
</body>
</html>
`;
}

function row({ method, path, what }: Listed): string {
  const template = path.replace(/:([A-Za-z]+)/g, '{$1}');
  return `<tr><td>${method}</td><td><code>${escaped(template)}</code></td><td>${escaped(what)}</td></tr>`;
}

const REFERENCES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => REFERENCES[character] ?? character);
}
