import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { ENDPOINTS, errorText } from './endpoints.ts';
import { cachingOf, rateLimitOf } from './headers.ts';
import { keyFor, putSubject } from './subject.ts';

const gateway = await forFile(startTestGateway());

/** Moves the clock on to a whole second; returns it, in Unix seconds. */
function nextWholeSecond(): number {
  gateway.clock.advanceMicros(1_000_000 - (gateway.clock.nowMicros() % 1_000_000));
  return gateway.clock.nowMicros() / 1_000_000;
}

const MESSAGE = 'The rate limit of this API key is used up. Try again after the time in Retry-After.';

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test('R1, R2: past the limit of the minute; it costs nothing in either window, nor a call to the store', async () => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject, { perMinute: 2, perHour: 10 });
    const startSeconds = nextWholeSecond();
    expect((await gateway.get(endpoint.path(subject), { key })).status).toBe(200);
    gateway.clock.advance(20_000);
    expect((await gateway.get(endpoint.path(subject), { key })).status).toBe(200);
    gateway.clock.advance(10_000);
    const before = gateway.store.calls();
    const expected = {
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(startSeconds + 80),
      'x-ratelimit-active-window': 'minute',
      'x-ratelimit-minute-limit': '2',
      'x-ratelimit-minute-remaining': '0',
      'x-ratelimit-minute-reset': String(startSeconds + 80),
      'x-ratelimit-hour-limit': '10',
      'x-ratelimit-hour-remaining': '8',
      'x-ratelimit-hour-reset': String(startSeconds + 3620),
      'ratelimit-policy': '"minute";q=2;w=60, "hour";q=10;w=3600',
      ratelimit: '"minute";r=0;t=30, "hour";r=8;t=3570',
      // The first request leaves the minute when more than 60 s have gone by, so a microsecond after 30 s from now.
      'retry-after': '31',
    };
    for (const method of ['GET', 'HEAD', 'GET']) {
      const reply = await gateway.get(endpoint.path(subject), { key, method, headers: { 'if-none-match': '*' } });
      expect(reply.status).toBe(429);
      expect(reply.text).toBe(method === 'HEAD' ? '' : errorText(endpoint, 429, MESSAGE));
      expect(rateLimitOf(reply)).toEqual(expected);
      expect(cachingOf(reply)).toEqual({ 'cache-control': 'no-store' });
      expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
    }
    expect(gateway.store.calls()).toBe(before);
    gateway.clock.advance(30_000);
    expect((await gateway.get(endpoint.path(subject), { key })).status).toBe(429);
    gateway.clock.advanceMicros(1);
    const admitted = await gateway.get(endpoint.path(subject), { key });
    expect(admitted.status).toBe(200);
    expect(admitted.headers['x-ratelimit-hour-remaining']).toBe('7');
  });

  test('R2, R3: past the limit of the hour', async () => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject, { perMinute: 5, perHour: 1 });
    const startSeconds = nextWholeSecond();
    await gateway.get(endpoint.path(subject), { key });
    gateway.clock.advanceMicros(500_000);
    const reply = await gateway.get(endpoint.path(subject), { key });
    expect(reply.status).toBe(429);
    expect(reply.text).toBe(errorText(endpoint, 429, MESSAGE));
    expect(rateLimitOf(reply)).toEqual({
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(startSeconds + 3600),
      'x-ratelimit-active-window': 'hour',
      'x-ratelimit-minute-limit': '5',
      'x-ratelimit-minute-remaining': '4',
      'x-ratelimit-minute-reset': String(startSeconds + 60),
      'x-ratelimit-hour-limit': '1',
      'x-ratelimit-hour-remaining': '0',
      'x-ratelimit-hour-reset': String(startSeconds + 3600),
      'ratelimit-policy': '"minute";q=5;w=60, "hour";q=1;w=3600',
      ratelimit: '"minute";r=4;t=60, "hour";r=0;t=3600',
      'retry-after': '3600',
    });
  });
});
