/** The page at `/`: what this listener serves. No script and nothing from elsewhere. */
import { createHash } from 'node:crypto';
import type { Endpoint } from './endpoint.ts';

const STYLE = `
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 1rem 0.4rem 0; border-bottom: 1px solid #8886; }
`;

export interface Page {
  readonly html: string;
  /** The Content-Security-Policy that lets the page's own style sheet in, and nothing else. */
  readonly contentSecurityPolicy: string;
}

/** Rendered once: it depends on the endpoints alone. */
export function indexPage(endpoints: readonly Pick<Endpoint, 'method' | 'path' | 'what'>[]): Page {
  const rows = endpoints.map(
    (endpoint) => `<tr><td>${endpoint.method}</td><td>${address(endpoint)}</td><td>${escaped(endpoint.what)}</td></tr>`,
  );
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>evalgate admin</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>evalgate admin</h1>
<p>This listener is for operators. Bodies are JSON. Where ADMIN_TOKEN is set, everything but /livez and /readyz needs the header <code>Authorization: Bearer &lt;token&gt;</code>.</p>
<table>
<thead><tr><th scope="col">Method</th><th scope="col">Path</th><th scope="col">What it does</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody>
</table>
</main>
</body>
</html>
`;
  const digest = createHash('sha256').update(STYLE).digest('base64');
  return {
    html,
    contentSecurityPolicy: `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  };
}

/** A link where the address can be followed as it is: a GET without parameters. */
function address({ method, path }: Pick<Endpoint, 'method' | 'path'>): string {
  const text = escaped(path.replace(/:([A-Za-z]+)/g, '{$1}'));
  return method === 'GET' && !path.includes(':') ? `<a href="${text}">${text}</a>` : text;
}

const REFERENCES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => REFERENCES[character] ?? character);
}
