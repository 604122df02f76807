import { beforeEach, describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { GET_CALL, GET_RUBRIC, LIST_CALLS, LIST_REPORTS } from './endpoints.ts';
import { rateLimitOf } from './headers.ts';
import { rotateKey } from './keys.ts';
import { keyFor, putSubject, type Subject } from './subject.ts';

let subject: Subject;
/** Unix seconds at which the test began. */
let start: number;

const gateway = await forFile(startTestGateway());
beforeEach(() => {
  subject = putSubject(gateway.store);
  gateway.clock.advanceMicros(1_000_000 - (gateway.clock.nowMicros() % 1_000_000));
  start = gateway.clock.nowMicros() / 1_000_000;
});

function ask(key: string): Promise<Reply> {
  return gateway.get(LIST_CALLS.path(subject), { key });
}

/** Those of the ten headers that are of the active window. */
function activeOf({ headers }: Reply): readonly unknown[] {
  return ['active-window', 'limit', 'remaining', 'reset'].map((name) => headers[`x-ratelimit-${name}`]);
}

describe('the headers', () => {
  test('R1, R2, R4: by default 120 a minute and 3,000 an hour', async () => {
    const key = await gateway.issueKey({ workspaceIds: [subject.workspaceId] });
    const reply = await ask(key);
    expect(rateLimitOf(reply)).toEqual({
      'x-ratelimit-limit': '120',
      'x-ratelimit-remaining': '119',
      'x-ratelimit-reset': String(start + 60),
      'x-ratelimit-active-window': 'minute',
      'x-ratelimit-minute-limit': '120',
      'x-ratelimit-minute-remaining': '119',
      'x-ratelimit-minute-reset': String(start + 60),
      'x-ratelimit-hour-limit': '3000',
      'x-ratelimit-hour-remaining': '2999',
      'x-ratelimit-hour-reset': String(start + 3600),
      'ratelimit-policy': '"minute";q=120;w=60, "hour";q=3000;w=3600',
      ratelimit: '"minute";r=119;t=60, "hour";r=2999;t=3600',
    });
  });

  test('R2, R4: as time passes: Reset follows the newest request, t the oldest in the window', async () => {
    const key = await keyFor(gateway, subject, { perMinute: 5, perHour: 100 });
    await ask(key);
    gateway.clock.advance(10_000);
    const second = rateLimitOf(await ask(key));
    expect(second).toMatchObject({
      'x-ratelimit-minute-remaining': '3',
      'x-ratelimit-minute-reset': String(start + 70),
      'x-ratelimit-hour-remaining': '98',
      'x-ratelimit-hour-reset': String(start + 3610),
      ratelimit: '"minute";r=3;t=50, "hour";r=98;t=3590',
    });
    gateway.clock.advance(55_000);
    const third = rateLimitOf(await ask(key));
    expect(third).toMatchObject({
      'x-ratelimit-minute-remaining': '3',
      'x-ratelimit-minute-reset': String(start + 125),
      'x-ratelimit-hour-remaining': '97',
      'x-ratelimit-hour-reset': String(start + 3665),
      ratelimit: '"minute";r=3;t=5, "hour";r=97;t=3535',
    });
  });

  test("R1: a key's own limits override, each of them by itself", async () => {
    const onlyMinute = await gateway.issueKey({ workspaceIds: [subject.workspaceId], perMinute: 7 });
    const onlyHour = await gateway.issueKey({ workspaceIds: [subject.workspaceId], perHour: 9 });
    expect((await ask(onlyMinute)).headers['ratelimit-policy']).toBe('"minute";q=7;w=60, "hour";q=3000;w=3600');
    expect((await ask(onlyHour)).headers['ratelimit-policy']).toBe('"minute";q=120;w=60, "hour";q=9;w=3600');
  });

  test('R3: the active window is the one with fewer remaining; a tie is the minute', async () => {
    const key = await keyFor(gateway, subject, { perMinute: 4, perHour: 5 });
    expect(activeOf(await ask(key))).toEqual(['minute', '4', '3', String(start + 60)]);
    gateway.clock.advance(61_000);
    expect(activeOf(await ask(key))).toEqual(['minute', '4', '3', String(start + 121)]);
    gateway.clock.advance(61_000);
    expect(activeOf(await ask(key))).toEqual(['hour', '5', '2', String(start + 122 + 3600)]);
  });
});

describe('requests that count in the windows', () => {
  test('R1: all endpoints of both surfaces draw on the same two windows', async () => {
    const key = await keyFor(gateway, subject, { perMinute: 10, perHour: 20 });
    const remaining: unknown[] = [];
    for (const endpoint of [LIST_REPORTS, LIST_CALLS, GET_CALL, GET_RUBRIC]) {
      const { headers } = await gateway.get(endpoint.path(subject), { key });
      remaining.push([headers['x-ratelimit-minute-remaining'], headers['x-ratelimit-hour-remaining']]);
    }
    expect(remaining).toEqual([
      ['9', '19'],
      ['8', '18'],
      ['7', '17'],
      ['6', '16'],
    ]);
  });

  test('R1: two keys of one workspace have a quota each', async () => {
    const limits = { perMinute: 1, perHour: 1 };
    const [one, two] = [await keyFor(gateway, subject, limits), await keyFor(gateway, subject, limits)];
    expect([(await ask(one)).status, (await ask(one)).status, (await ask(two)).status]).toEqual([200, 429, 200]);
  });

  test('K3: a rotated key and its successor share one quota', async () => {
    const { keyId, token: old } = await gateway.issue({
      workspaceIds: [subject.workspaceId],
      perMinute: 3,
      perHour: 9,
    });
    await ask(old);
    const successor = await rotateKey(gateway, keyId, '1h');
    expect((await ask(successor)).headers['x-ratelimit-minute-remaining']).toBe('1');
    expect((await ask(old)).headers['x-ratelimit-minute-remaining']).toBe('0');
    expect([(await ask(old)).status, (await ask(successor)).status]).toEqual([429, 429]);
    gateway.clock.advance(3_600_000);
    expect([(await ask(old)).status, (await ask(successor)).status]).toEqual([403, 200]);
  });
});
