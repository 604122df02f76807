/** A1: the document and its page need no key. */
import { describe, expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { type Ask, startTestGateway } from '../support/gateway.ts';

const FILES = [
  '/openapi.json',
  '/docs',
  '/docs/page.css',
  '/docs/page.js',
  '/docs/swagger-ui.css',
  '/docs/swagger-ui-bundle.js',
  '/docs/favicon-32x32.png',
];
const IDENTITY = { 'accept-encoding': 'identity' };

const gateway = await forFile(startTestGateway());

const get = (path: string, ask: Ask = {}) => gateway.get(path, { ...ask, isUndocumented: true });

test('/docs is a page that may load nothing but what this server has', async () => {
  const { status, headers, text } = await get('/docs');
  expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  expect(headers['content-security-policy']).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  expect(text).not.toMatch(/https?:|\/\/|<script>|<style>| style=| on\w+=/);
  const addresses = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address);
  expect(addresses).toHaveLength(6);
  for (const address of addresses) {
    const { pathname } = new URL(address, `${gateway.publicUrl}/docs`);
    expect([address, (await get(pathname)).status]).toEqual([address, 200]);
  }
});

describe.each(FILES)('%s', (path) => {
  test('A2: HEAD gives the headers of GET and no body; other methods get 405', async () => {
    const whole = await get(path, { headers: IDENTITY });
    const head = await get(path, { method: 'HEAD', headers: IDENTITY });
    expect([head.status, head.text, whole.headers['content-length']]).toEqual([200, '', String(whole.bytes.length)]);
    for (const name of ['content-type', 'etag', 'cache-control', 'content-length', 'x-content-type-options'] as const) {
      expect([name, head.headers[name]]).toEqual([name, whole.headers[name]]);
    }
    // The libraries' own files change with a release only.
    const isOwn = !/swagger|favicon/.test(path);
    const cacheControl = isOwn ? 'public, no-cache' : 'public, max-age=3600';
    expect(whole.headers).toMatchObject({ 'cache-control': cacheControl, 'x-content-type-options': 'nosniff' });
    const other = await get(path, { method: 'POST' });
    expect([other.status, other.headers.allow, other.headers['cache-control'], other.json]).toEqual([
      405,
      'GET, HEAD',
      'no-store',
      { error: 'The method POST is not allowed here; use GET or HEAD.' },
    ]);
  });

  test('is 304 if If-None-Match names it, and comes compressed with an ETag of its own', async () => {
    const plain = await get(path, { headers: IDENTITY });
    const etag = plain.headers.etag ?? '';
    expect(etag).toMatch(/^"[\w-]+"$/);
    const same = await get(path, { headers: { ...IDENTITY, 'if-none-match': etag } });
    expect([same.status, same.text, same.headers.etag]).toEqual([304, '', etag]);
    const coded = await get(path, { headers: { 'accept-encoding': 'gzip' } });
    const isCoded = !path.endsWith('.png');
    expect([coded.headers['content-encoding'], coded.headers.etag]).toEqual(
      isCoded ? ['gzip', etag.replace(/"$/, '-gzip"')] : [undefined, etag],
    );
    expect(coded.headers.vary).toContain('Accept-Encoding');
    expect(coded.text).toBe(plain.text);
  });
});

test.each(['GET', 'HEAD'])(
  'A1: %s / leads to /docs without a key, is not counted, and is not to be kept',
  async (method) => {
    const key = await gateway.issueKey({ perMinute: 1, perHour: 1 });
    for (const ask of [{}, { key }, { key }]) {
      const { status, headers } = await get('/', { ...ask, method });
      expect([status, headers.location, headers['cache-control']]).toEqual([302, '/docs', 'no-store']);
      expect(headers).not.toHaveProperty('x-ratelimit-limit');
    }
    expect((await gateway.get('/v2/calls', { key })).status).toBe(200);
  },
);

test('any other method of / is 405', async () => {
  const { status, headers } = await get('/', { method: 'POST' });
  expect([status, headers.allow, headers['x-error-code']]).toEqual([405, 'GET, HEAD', 'method_not_allowed']);
});

test.each(['/docs/', '/docs/package.json', '/docs/../package.json', '/openapi.yaml', '/v1/openapi.json'])(
  '%s is not there',
  async (path) => {
    expect((await get(path)).status).toBe(404);
  },
);
