/** The limiter's window is of the system's clock; all that is tested here happens well within one of its minutes. */
import { beforeAll, describe, expect, test } from 'vitest';
import { newToken } from '../../../src/keys/token.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { forFile, forTest } from '../../support/opened.ts';
import { errorText, GET_CALL, LIST_CALLS, LIST_REPORTS, TEXTS } from './endpoints.ts';
import { deprecateKey } from './keys.ts';
import { keyFor, newSubject, putSubject } from './subject.ts';

const TRUSTED_PROXIES = '127.0.0.1/32,10.0.0.0/8,192.168.1.1,fd00::/8';
const gateway = await forFile(startTestGateway({ env: { TRUSTED_PROXIES } }));
const untrusting = await forFile(startTestGateway());

const TOO_MANY = errorText(LIST_CALLS, 401, TEXTS.tooManyFailures);

function askFrom(address: string, authorization?: string): Promise<Reply> {
  const headers = { 'x-forwarded-for': address, ...(authorization === undefined ? {} : { authorization }) };
  return gateway.get('/v2/calls', { headers });
}

async function fail(address: string, times: number): Promise<readonly Reply[]> {
  const replies: Reply[] = [];
  for (let time = 0; time < times; time += 1) replies.push(await askFrom(address, `Bearer ${newToken()}`));
  return replies;
}

function isBlocked({ status, headers }: Reply): boolean {
  return status === 401 && headers['retry-after'] !== undefined;
}

test('K9: 60 failures are answered as such, the 61st with Retry-After, and no other address is touched', async () => {
  const replies = await fail('203.0.113.1', 62);
  expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 62 }, () => 401));
  expect(replies.slice(0, 60).filter(isBlocked)).toEqual([]);
  for (const reply of replies.slice(60)) {
    expect([reply.headers['x-error-code'], reply.text]).toEqual(['too_many_failures', TOO_MANY]);
    expect(Number(reply.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(Number(reply.headers['retry-after'])).toBeLessThanOrEqual(60);
  }
  expect(isBlocked(await askFrom('203.0.113.2', 'Bearer x'))).toBe(false);
});

test('K9: failures of every kind count, on both surfaces and on unknown paths', async () => {
  const address = '203.0.113.3';
  const kinds = [undefined, 'Basic eDp5', 'Bearer', 'Bearer evg_wrong', `Bearer ${newToken()}`, 'Bearer legacy'];
  const paths = [LIST_CALLS.path(newSubject()), LIST_REPORTS.path(newSubject()), '/v2/nowhere'];
  for (let time = 0; time < 60; time += 1) {
    const authorization = kinds[time % kinds.length];
    // Unknown paths look at a key only if there is one.
    const path = authorization === undefined ? '/v2/calls' : (paths[time % paths.length] ?? '');
    const headers = { 'x-forwarded-for': address, ...(authorization === undefined ? {} : { authorization }) };
    await gateway.get(path, { headers, isUndocumented: true });
  }
  for (const authorization of kinds) {
    const reply = await askFrom(address, authorization);
    expect(reply.text).toBe(TOO_MANY);
  }
});

test('K9: a key known to be good is never refused for its address, an inactive one gets its 403 there, and neither counts', async () => {
  const address = '203.0.113.4';
  const subject = putSubject(gateway.store);
  const good = await keyFor(gateway, subject);
  const { keyId, token: ended } = await gateway.issue({ workspaceIds: [subject.workspaceId] });
  await deprecateKey(gateway, keyId);
  await fail(address, 60);
  for (let time = 0; time < 3; time += 1) {
    expect((await askFrom(address, `Bearer ${good}`)).status).toBe(200);
    const inactive = await askFrom(address, `Bearer ${ended}`);
    expect(inactive.status).toBe(403);
    expect(inactive.headers['retry-after']).toBeUndefined();
  }
  expect(isBlocked(await askFrom(address, 'Bearer x'))).toBe(true);
});

test('K9: requests that succeed and keys that are inactive use up no failures', async () => {
  const address = '203.0.113.5';
  const subject = putSubject(gateway.store);
  const good = await keyFor(gateway, subject);
  const { keyId, token: ended } = await gateway.issue({ workspaceIds: [subject.workspaceId] });
  await deprecateKey(gateway, keyId);
  for (let time = 0; time < 35; time += 1) {
    await askFrom(address, `Bearer ${good}`);
    await askFrom(address, `Bearer ${ended}`);
  }
  const replies = await fail(address, 61);
  expect(replies.map(isBlocked)).toEqual(Array.from({ length: 61 }, (_, i) => i === 60));
});

test('K9: of many failures at once no more than 60 are looked up', async () => {
  const replies = await Promise.all(Array.from({ length: 150 }, () => askFrom('203.0.113.6', `Bearer ${newToken()}`)));
  expect(replies.filter(isBlocked)).toHaveLength(90);
});

test('K9: IPv6 addresses of one /64 are one', async () => {
  await fail('2001:db8:1:2::1', 30);
  await fail('[2001:db8:1:2:ffff::9]:443', 30);
  expect(isBlocked(await askFrom('2001:db8:1:2:abcd::', 'Bearer x'))).toBe(true);
  expect(isBlocked(await askFrom('2001:db8:1:3::1', 'Bearer x'))).toBe(false);
});

function hops(count: number): string {
  return Array.from({ length: count }, () => '10.0.0.3').join(', ');
}

describe('K9: X-Forwarded-For is believed only as far as trusted proxies wrote it', () => {
  const caller = '203.0.113.7';
  const local = '127.0.0.1';
  const proxy = '10.0.0.2';
  const inside = '2001:db8:5::1';

  beforeAll(async () => {
    for (const address of [caller, local, proxy, inside]) await fail(address, 60);
  });

  test.each([
    [caller, caller],
    [`1.1.1.1, ${caller}`, caller],
    [`1.1.1.1, ${caller}, 10.1.2.3`, caller],
    [`1.1.1.1,${caller},192.168.1.1,fd12::1`, caller],
    [`198.51.100.1, ${caller}, 10.1.2.3, 127.0.0.1`, caller],
    [`::ffff:${caller}`, caller],
    ['::ffff:cb00:7107', caller],
    [`${caller}:4711`, caller],
    ['2001:DB8:5:0::9', inside],
    ['[2001:db8:5::9]:4711', inside],
    ['[2001:db8:5::9]', inside],
    ['10.9.9.9, 10.0.0.2', 'none of these'],
    [`${proxy}, 10.9.9.9`, proxy],
    [`203.0.113.77, unknown, ${proxy}`, proxy],
    [`203.0.113.77, 10.7.7.7,`, local],
    [`${caller}, 192.168.1.2`, 'none of these'],
    [`${caller}, ${hops(31)}`, caller],
    [`${caller}, ${hops(500)}`, 'none of these'],
    ['unknown', local],
    ['', local],
    ['1', local],
    ['127.1', local],
    ['010.0.0.9', local],
    ['256.1.1.1', local],
    ['1.2.3.4.5', local],
    ['a'.repeat(5000), local],
    [',,', local],
    [`<script>, ${caller}`, caller],
  ])('%s', async (forwardedFor, address) => {
    expect(isBlocked(await askFrom(forwardedFor, 'Bearer x'))).toBe(address !== 'none of these');
  });

  test('several fields are one list', async () => {
    const reply = await gateway.raw(
      'GET /v2/calls HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer x\r\nConnection: close\r\n' +
        `X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: ${caller}, 10.0.0.9\r\n\r\n`,
    );
    expect([reply.status, reply.headers['retry-after'] === undefined]).toEqual([401, false]);
  });
});

test.each([
  ['::ffff:10.0.0.0/104', '10.200.0.1', true],
  ['::ffff:10.0.0.0/104', '11.0.0.1', false],
  ['::/0', '10.0.0.1', false],
])('K9: behind %s the hop %s is trusted: %s', async (subnet, hop, isTrusted) => {
  const behind = await forTest(startTestGateway({ env: { TRUSTED_PROXIES: `127.0.0.1,${subnet}` } }));
  const from = (forwardedFor: string): Promise<Reply> =>
    behind.get('/v2/calls', { headers: { authorization: 'Bearer x', 'x-forwarded-for': forwardedFor } });
  for (let time = 0; time < 60; time += 1) await from(`203.0.113.7, ${hop}`);
  expect([isBlocked(await from('203.0.113.7')), isBlocked(await from(hop))]).toEqual([isTrusted, !isTrusted]);
});

test('K9: without trusted proxies X-Forwarded-For counts for nothing', async () => {
  const from = (address: string): Promise<Reply> =>
    untrusting.get('/v2/calls', { headers: { authorization: 'Bearer x', 'x-forwarded-for': address } });
  for (let time = 0; time < 60; time += 1) await from(`198.51.100.${time}`);
  expect(isBlocked(await from('203.0.113.99'))).toBe(true);
  const subject = putSubject(untrusting.store);
  const reply = await untrusting.get(GET_CALL.path(subject), { key: await keyFor(untrusting, subject) });
  expect(reply.status).toBe(200);
});

test('K9: what needs no key is served to an address that has failed too often', async () => {
  await fail('203.0.113.8', 60);
  for (const path of ['/openapi.json', '/docs']) {
    const reply = await gateway.get(path, { headers: { 'x-forwarded-for': '203.0.113.8' }, isUndocumented: true });
    expect(reply.status).toBe(200);
  }
});
