/** A2: HEAD is GET without the body. That of refusals is in refusals.test.ts. */
import { describe, expect, test } from 'vitest';
import { startTestGateway } from '../../support/gateway.ts';
import { forFile } from '../../support/opened.ts';
import { ENDPOINTS } from './endpoints.ts';
import { uncountedHeaders } from './headers.ts';
import { newSubject, putSubject, readerOf } from './subject.ts';

const gateway = await forFile(startTestGateway());

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test.each(['identity', 'br'])('A2: HEAD says what GET does, coded %s', async (coding) => {
    const subject = putSubject(gateway.store, newSubject(), { title: 'T'.repeat(2000) });
    const { ask } = await readerOf(gateway, endpoint, { subject });
    await ask();
    const headers = { 'accept-encoding': coding };
    const [get, head] = [await ask({ headers }), await ask({ headers, method: 'HEAD' })];
    expect([head.status, head.bytes.length]).toEqual([200, 0]);
    expect(head.headers['content-length']).toBe(String(get.bytes.length));
    expect(uncountedHeaders(head)).toEqual(uncountedHeaders(get));
  });

  test('A2: HEAD fills the cache as GET does', async () => {
    const { ask } = await readerOf(gateway, endpoint);
    const head = await ask({ method: 'HEAD' });
    expect(head.headers['cache-status']).toBe('evalgate; fwd=uri-miss; stored');
    const get = await ask();
    expect(get.headers['cache-status']).toMatch(/^evalgate; hit; ttl=\d+$/);
    expect(get.bytes.length).toBe(Number(head.headers['content-length']));
  });
});
