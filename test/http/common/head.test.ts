import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { ENDPOINTS, LIST_CALLS, SINGLE_READS } from './endpoints.ts';
import { uncountedHeaders } from './headers.ts';
import { keyFor, newSubject, putSubject } from './subject.ts';

const gateway = await forFile(startTestGateway());

async function both(path: string, key: string | undefined, headers: Readonly<Record<string, string>> = {}) {
  const ask = { headers, ...(key === undefined ? {} : { key }) };
  return { get: await gateway.get(path, ask), head: await gateway.get(path, { ...ask, method: 'HEAD' }) };
}

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test.each(['identity', 'br'])('A2: HEAD is GET without the body, coded %s', async (coding) => {
    const subject = putSubject(gateway.store, newSubject(), { title: 'T'.repeat(2000) });
    const key = await keyFor(gateway, subject);
    await gateway.get(endpoint.path(subject), { key });
    const { get, head } = await both(endpoint.path(subject), key, { 'accept-encoding': coding });
    expect(head.status).toBe(200);
    expect(head.bytes.length).toBe(0);
    expect(head.headers['content-length']).toBe(String(get.bytes.length));
    expect(uncountedHeaders(head)).toEqual(uncountedHeaders(get));
  });

  test('A2: HEAD alone fills the cache as GET does', async () => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject);
    const head = await gateway.get(endpoint.path(subject), { key, method: 'HEAD' });
    expect(head.headers['cache-status']).toBe('evalgate; fwd=uri-miss; stored');
    const get = await gateway.get(endpoint.path(subject), { key });
    expect(get.headers['cache-status']).toMatch(/^evalgate; hit; ttl=\d+$/);
    expect(get.bytes.length).toBe(Number(head.headers['content-length']));
  });

  test('A2: HEAD without a key is a 401, and with one of another scope a 403', async () => {
    const subject = newSubject();
    const { get, head } = await both(endpoint.path(subject), undefined);
    expect(head.status).toBe(401);
    expect(head.bytes.length).toBe(0);
    expect(uncountedHeaders(head)).toEqual(uncountedHeaders(get));
    const scope = endpoint.scope === 'calls.read' ? 'coaching.read' : 'calls.read';
    const refused = await both(endpoint.path(subject), await keyFor(gateway, subject, { scopes: [scope] }));
    expect(refused.head.status).toBe(403);
    expect(refused.head.bytes.length).toBe(0);
    expect(uncountedHeaders(refused.head)).toEqual(uncountedHeaders(refused.get));
  });
});

test.each(SINGLE_READS)('A2: HEAD of what is not there: $name', async (endpoint) => {
  const subject = newSubject();
  const { get, head } = await both(endpoint.path(subject), await keyFor(gateway, subject));
  expect(head.status).toBe(404);
  expect(head.bytes.length).toBe(0);
  expect(uncountedHeaders(head)).toEqual(uncountedHeaders(get));
});

test('A2: HEAD with a bad query is a 400', async () => {
  const { get, head } = await both(`${LIST_CALLS.path(newSubject())}?page=0`, await keyFor(gateway, newSubject()));
  expect(head.status).toBe(400);
  expect(head.bytes.length).toBe(0);
  expect(uncountedHeaders(head)).toEqual(uncountedHeaders(get));
});

test('K8: HEAD counts as GET does', async () => {
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject, { perMinute: 3, perHour: 3 });
  const remaining: unknown[] = [];
  for (const method of ['HEAD', 'GET', 'HEAD', 'HEAD']) {
    const reply = await gateway.get(LIST_CALLS.path(subject), { key, method });
    remaining.push([reply.status, reply.headers['x-ratelimit-remaining']]);
  }
  expect(remaining).toEqual([
    [200, '2'],
    [200, '1'],
    [200, '0'],
    [429, '0'],
  ]);
});
