import { expect, test } from 'vitest';
import { indexPage } from '../../../src/admin/page.ts';

test('texts are escaped, and only what can be followed as it is becomes a link', () => {
  const { html } = indexPage([
    { method: 'GET', path: '/a', what: '<b> & "c"' },
    { method: 'GET', path: '/a/:id', what: 'd' },
    { method: 'POST', path: '/a', what: 'e' },
  ]);
  const rows = html.split('\n').filter((line) => line.startsWith('<tr><td>'));
  expect(rows).toEqual([
    '<tr><td>GET</td><td><a href="/a">/a</a></td><td>&lt;b&gt; &amp; &quot;c&quot;</td></tr>',
    '<tr><td>GET</td><td>/a/{id}</td><td>d</td></tr>',
    '<tr><td>POST</td><td>/a</td><td>e</td></tr>',
  ]);
});
