import { describe, expect, test } from 'vitest';
import { startTestGateway } from '../../support/gateway.ts';
import { forFile } from '../../support/opened.ts';
import { ENDPOINTS, errorText, TEXTS } from './endpoints.ts';
import { rateLimitOf } from './headers.ts';
import { readerOf } from './subject.ts';

const gateway = await forFile(startTestGateway());

/** Moves the clock on to a whole second; returns it, in Unix seconds. */
function nextWholeSecond(): number {
  gateway.clock.advanceMicros(1_000_000 - (gateway.clock.nowMicros() % 1_000_000));
  return gateway.clock.nowMicros() / 1_000_000;
}

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test('R1, R2: past the limit of the minute; it costs nothing in either window, nor a call to the store', async () => {
    const { ask } = await readerOf(gateway, endpoint, { perMinute: 2, perHour: 10 });
    const startSeconds = nextWholeSecond();
    expect((await ask()).status).toBe(200);
    gateway.clock.advance(20_000);
    expect((await ask()).status).toBe(200);
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
      const reply = await ask({ method, headers: { 'if-none-match': '*' } });
      expect([reply.status, reply.headers['x-error-code']]).toEqual([429, 'rate_limited']);
      expect(reply.text).toBe(method === 'HEAD' ? '' : errorText(endpoint, 429, TEXTS.limited));
      expect(rateLimitOf(reply)).toEqual(expected);
    }
    expect(gateway.store.calls()).toBe(before);
    gateway.clock.advance(30_000);
    expect((await ask()).status).toBe(429);
    gateway.clock.advanceMicros(1);
    const admitted = await ask();
    expect([admitted.status, admitted.headers['x-ratelimit-hour-remaining']]).toEqual([200, '7']);
  });
});
