import { expect, test } from 'vitest';
import { renderPage } from '../../../../src/admin/dashboard/page.ts';

const NOTHING = { styles: [], scripts: [], modules: [] };

test('what endpoints are called is escaped, and parameters of a path are marked', () => {
  const html = renderPage({
    ...NOTHING,
    endpoints: [
      { method: 'GET', path: '/a', what: '<b> & "c"' },
      { method: 'GET', path: '/a/:id', what: 'd' },
    ],
  });
  const rows = html.split('\n').filter((line) => line.startsWith('<tr><td>'));
  expect(rows).toEqual([
    '<tr><td>GET</td><td><code>/a</code></td><td>&lt;b&gt; &amp; &quot;c&quot;</td></tr>',
    '<tr><td>GET</td><td><code>/a/{id}</code></td><td>d</td></tr>',
  ]);
});

test('files are named relative to the page, so that it works behind a prefix', () => {
  const html = renderPage({ styles: ['a.css'], scripts: ['b.js'], modules: ['c.js'], endpoints: [] });
  const named = [...html.matchAll(/(?:src|href)="([^"#]*\.(?:js|css))"/g)].map(([, address]) => address);
  expect(named).toEqual(['dashboard/b.js', 'dashboard/a.css', 'dashboard/c.js', 'dashboard/main.js']);
});
