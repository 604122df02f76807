import { createServer, type IncomingMessage } from 'node:http';
import Koa from 'koa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeAnswer } from '../../src/http/answer.ts';
import { HeadResponse } from '../../src/http/head.ts';
import { errorAnswer } from '../../src/http/layers/render-errors.ts';
import { beginRequest } from '../../src/http/layers/request-context.ts';
import { createDocs } from '../../src/http/openapi/docs.ts';
import { buildOpenApiDocument } from '../../src/http/openapi/document.ts';
import type { RequestState } from '../../src/http/state.ts';
import { listenOnLoopback, type RunningServer } from '../support/loopback.ts';

const PAGES = ['/docs', '/docs/page.css', '/docs/page.js', '/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js'];
const IDENTITY = { 'Accept-Encoding': 'identity' };

let current = buildOpenApiDocument({ limits: { perMinute: 120, perHour: 3000 } });
let server: RunningServer;

beforeAll(async () => {
  const koa = new Koa<RequestState>();
  const docs = createDocs({ document: () => current });
  const serve = async (request: IncomingMessage, response: HeadResponse): Promise<void> => {
    const ctx = koa.createContext<RequestState>(request, response);
    beginRequest(ctx);
    const answer = await docs(ctx).catch((error: unknown) => errorAnswer(ctx, error));
    if (answer === null) response.end('passed on');
    else writeAnswer(ctx, response, answer, false);
  };
  server = await listenOnLoopback(createServer({ ServerResponse: HeadResponse }, (...pair) => void serve(...pair)));
});

afterAll(async () => {
  await server.close();
});

async function get(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(`${server.url}${path}`, { method, headers });
}

describe('A1: GET /openapi.json needs no key', () => {
  test('and is the document as it stands', async () => {
    const response = await get('/openapi.json');
    expect(response.status).toBe(200);
    expect(response.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
    expect(response.headers.get('Cache-Control')).toBe('public, no-cache');
    expect(await response.json()).toEqual(current);
  });

  test('and follows a change of the limits, with another ETag', async () => {
    const before = await get('/openapi.json', IDENTITY);
    current = buildOpenApiDocument({ limits: { perMinute: 5, perHour: 6 } });
    const after = await get('/openapi.json', IDENTITY);
    expect(await after.text()).toContain('5 requests in any 60 seconds');
    expect(await before.text()).not.toContain('5 requests in any 60 seconds');
    expect(after.headers.get('ETag')).not.toBe(before.headers.get('ETag'));
  });
});

describe('A1: GET /docs needs no key', () => {
  test('and is a page that may load nothing but what this server has', async () => {
    const response = await get('/docs');
    const page = await response.text();
    expect(response.status).toBe(200);
    expect(response.headers.get('Content-Type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('Content-Security-Policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(page).not.toMatch(/https?:|\/\/|<script>|<style>| style=| on\w+=/);
    const addresses = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address);
    expect(addresses).toHaveLength(6);
    for (const address of addresses) {
      const asset = await fetch(new URL(address, response.url));
      expect([address, asset.status]).toEqual([address, 200]);
      expect((await asset.arrayBuffer()).byteLength).toBeGreaterThan(0);
    }
  });
});

describe.each(['/openapi.json', ...PAGES, '/docs/favicon-32x32.png'])('%s', (path) => {
  test('is never guessed to be of another type', async () => {
    const response = await get(path, {}, 'HEAD');
    expect(response.headers.get('X-Content-Type-Options')).toBe('nosniff');
  });

  test('A2: HEAD gives the headers of GET and no body', async () => {
    const [head, whole] = await Promise.all([get(path, IDENTITY, 'HEAD'), get(path, IDENTITY)]);
    expect(head.status).toBe(200);
    expect(await head.text()).toBe('');
    const length = String((await whole.arrayBuffer()).byteLength);
    for (const name of ['Content-Type', 'ETag', 'Cache-Control', 'Content-Length', 'Content-Security-Policy']) {
      expect(head.headers.get(name)).toBe(whole.headers.get(name));
    }
    expect(head.headers.get('Content-Length')).toBe(length);
  });

  test('A2: other methods get 405 with Allow', async () => {
    const response = await get(path, {}, 'POST');
    expect(response.status).toBe(405);
    expect(response.headers.get('Allow')).toBe('GET, HEAD');
    expect(response.headers.get('Cache-Control')).toBe('no-store');
    expect(await response.json()).toEqual({ error: 'The method POST is not allowed here; use GET or HEAD.' });
  });

  test('is 304 where If-None-Match names it, and 200 where it names another', async () => {
    const etag = (await get(path)).headers.get('ETag') ?? '';
    expect(etag).toMatch(/^"[\w-]+"$/);
    const same = await get(path, { 'If-None-Match': etag });
    expect([same.status, await same.text(), same.headers.get('ETag')]).toEqual([304, '', etag]);
    expect((await get(path, { 'If-None-Match': '"another"' })).status).toBe(200);
  });
});

test.each(['/openapi.json', ...PAGES])(
  '%s comes compressed where that is accepted, with its own ETag',
  async (path) => {
    const [coded, plain] = await Promise.all([get(path, { 'Accept-Encoding': 'gzip' }), get(path, IDENTITY)]);
    expect(coded.headers.get('Content-Encoding')).toBe('gzip');
    expect(coded.headers.get('Vary')).toContain('Accept-Encoding');
    expect(coded.headers.get('ETag')).toBe(plain.headers.get('ETag')?.replace(/"$/, '-gzip"'));
    expect(plain.headers.get('Content-Encoding')).toBeNull();
    expect(await coded.text()).toBe(await plain.text());
  },
);

test.each(['/', '/docs/', '/docs/package.json', '/docs/../package.json', '/openapi.yaml', '/v1/openapi.json'])(
  '%s is passed on',
  async (path) => {
    expect(await (await get(path)).text()).toBe('passed on');
  },
);
