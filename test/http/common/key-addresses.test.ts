/** K11: a key that is bound to addresses is refused from any other. */
import { describe, expect, test } from 'vitest';
import { auditOf, logOf } from '../../support/admin.ts';
import { type KeyRequest, type Reply, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { forFile, forTest } from '../../support/opened.ts';
import { BACKENDS, World } from '../../support/world.ts';
import { ENDPOINTS, GET_CALL, LIST_CALLS } from './endpoints.ts';
import { cachingOf, rateLimitOf } from './headers.ts';
import { newSubject, putSubject, type Subject } from './subject.ts';

const FROM = ['203.0.113.0/24', '2001:db8::/32', '198.51.100.7'];
const gateway = await forFile(startTestGateway({ env: { TRUSTED_PROXIES: '127.0.0.1/32' } }));

/** A bound key that may read the subject. */
const issueFor = ({ workspaceId }: Subject, more: KeyRequest = {}) =>
  gateway.issue({ workspaceIds: [workspaceId], from: FROM, ...more });

function ask(address: string, key: string, path = '/v2/key', at: TestGateway = gateway): Promise<Reply> {
  return at.get(path, { key, headers: { 'x-forwarded-for': address } });
}

const codeOf = ({ status, headers }: Reply) => [status, headers['x-error-code']];
const FORBIDDEN = [403, 'address_forbidden'];

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test('is answered at addresses of the key, and elsewhere refused as any 403 is, in no quota', async () => {
    const subject = putSubject(gateway.store);
    const { token } = await issueFor(subject, { perMinute: 100 });
    const path = endpoint.path(subject);
    expect((await ask('203.0.113.9', token, path)).status).toBe(200);
    const before = gateway.store.calls();
    for (const address of ['203.0.114.9', '2001:db9::1']) {
      const refused = await ask(address, token, path);
      expect([...codeOf(refused), refused.text, rateLimitOf(refused), cachingOf(refused)]).toEqual([
        ...FORBIDDEN,
        endpoint.forbidden,
        {},
        { 'cache-control': 'no-store' },
      ]);
    }
    expect(gateway.store.calls()).toBe(before);
    const again = await ask('2001:db8:1::7', token, path);
    expect([again.status, again.headers['x-ratelimit-minute-remaining']]).toEqual([200, '98']);
  });
});

test.each([
  ['203.0.113.0', 200],
  ['203.0.113.255', 200],
  ['::ffff:203.0.113.9', 200],
  ['198.51.100.7', 200],
  ['[2001:db8:ffff::1]:443', 200],
  ['203.0.112.255', 403],
  ['198.51.100.8', 403],
  ['2001:db7:ffff::1', 403],
  // The walk along the header ends at the proxy.
  ['no address', 403],
])('from %s: %i', async (address, status) => {
  const { token } = await issueFor(newSubject());
  expect((await ask(address, token)).status).toBe(status);
});

test('an IPv6 subnet holds no IPv4 address, and ::/0 only those of IPv6', async () => {
  const { token } = await issueFor(newSubject(), { from: ['::/0'] });
  expect([(await ask('2001:db8::1', token)).status, (await ask('192.0.2.4', token)).status]).toEqual([200, 403]);
});

test('X-Forwarded-For counts only from TRUSTED_PROXIES', async () => {
  const untrusting = await forTest(startTestGateway());
  const { token } = await untrusting.issue({ from: FROM });
  expect(codeOf(await ask('203.0.113.9', token, '/v2/key', untrusting))).toEqual(FORBIDDEN);
  const local = await untrusting.issue({ from: ['127.0.0.0/8', '::1'] });
  expect((await ask('203.0.113.9', local.token, '/v2/key', untrusting)).status).toBe(200);
});

test('K9: each refusal is a failed authentication of its address; elsewhere the key, and there every other key, is good', async () => {
  const own = await forTest(startTestGateway({ env: { TRUSTED_PROXIES: '127.0.0.1/32' } }));
  const [bound, other] = [await own.issue({ from: FROM }), await own.issueKey()];
  const elsewhere = '192.0.2.1';
  for (let time = 0; time < 60; time += 1) {
    expect(codeOf(await ask(elsewhere, bound.token, '/v2/calls', own))).toEqual(FORBIDDEN);
  }
  const blocked = await ask(elsewhere, bound.token, '/v2/calls', own);
  expect([...codeOf(blocked), Number(blocked.headers['retry-after']) > 0]).toEqual([401, 'too_many_failures', true]);
  expect((await ask(elsewhere, other, '/v2/calls', own)).status).toBe(200);
  expect((await ask('203.0.113.9', bound.token, '/v2/calls', own)).status).toBe(200);
});

const entry = (who: string, to: string) => ({ who, action: 'access.refuse', target: 'address', from: null, to });

test('each refusal is in the log with its address; the audit has one an hour per key, whatever the addresses', async () => {
  const own = await forTest(startTestGateway({ env: { TRUSTED_PROXIES: '127.0.0.1/32' } }));
  const [one, two] = [await own.issue({ from: FROM }), await own.issue({ from: FROM })];
  const refusals = async () => (await auditOf(own)).filter(({ action }) => action === 'access.refuse');
  for (const address of ['192.0.2.1', '192.0.2.2']) await ask(address, one.token, '/v2/calls', own);
  await ask('192.0.2.3', two.token, '/v2/calls', own);
  own.clock.advance(3_600_000);
  await ask('192.0.2.4', one.token, '/v2/calls', own);
  await ask('203.0.113.1', one.token, '/v2/calls', own);
  expect(await refusals()).toMatchObject([
    entry(one.keyId, '192.0.2.4'),
    entry(two.keyId, '192.0.2.3'),
    entry(one.keyId, '192.0.2.1'),
  ]);
  const lines = logOf(own, 'request').filter(({ status }) => status === 403);
  expect(lines.map(({ keyId, reason, address }) => [keyId, reason, address])).toEqual([
    [one.keyId, 'address-forbidden', '192.0.2.1'],
    [one.keyId, 'address-forbidden', '192.0.2.2'],
    [two.keyId, 'address-forbidden', '192.0.2.3'],
    [one.keyId, 'address-forbidden', '192.0.2.4'],
  ]);
});

test('K8: an inactive key is refused as such, and an unknown path counts in no quota', async () => {
  const { keyId, token } = await issueFor(newSubject());
  const nowhere = await gateway.get('/v2/nowhere', {
    key: token,
    headers: { 'x-forwarded-for': '192.0.2.8' },
    isUndocumented: true,
  });
  expect([nowhere.status, rateLimitOf(nowhere)]).toEqual([404, {}]);
  await gateway.admin('DELETE', `/api/keys/${keyId}`);
  expect(codeOf(await ask('192.0.2.8', token))).toEqual([403, 'key_inactive']);
});

describe.each(BACKENDS)('%s', (kind) => {
  test('K10: a key that is bound elsewhere while its read waits is refused', async () => {
    const world = await forTest(World.start(kind));
    const subject = putSubject(world.store);
    const { keyId, token: key } = await world.here.issue({ workspaceIds: [subject.workspaceId] });
    const hold = world.store.hold();
    const reply = world.here.get(GET_CALL.path(subject), { key });
    await world.store.waitForCalls(1);
    await world.change('PATCH', `/api/keys/${keyId}`, { from: FROM }, world.there);
    await world.eventually(async () => expect((await world.here.get('/v2/key', { key })).status).toBe(403));
    hold.release();
    const refused = await reply;
    expect([...codeOf(refused), refused.text, cachingOf(refused)]).toEqual([
      ...FORBIDDEN,
      GET_CALL.forbidden,
      { 'cache-control': 'no-store' },
    ]);
  });

  test('a binding is in force in every process, and so is its end', async () => {
    const world = await forTest(World.start(kind));
    const { keyId, token: key } = await world.here.issue({ from: FROM });
    const everywhere = async (status: number) =>
      world.everywhere(async (one) =>
        world.eventually(async () =>
          expect((await one.get(LIST_CALLS.path(newSubject()), { key })).status).toBe(status),
        ),
      );
    await everywhere(403);
    await world.change('PATCH', `/api/keys/${keyId}`, { from: null });
    await everywhere(200);
  });
});
