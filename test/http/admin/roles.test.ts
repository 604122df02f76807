/** What the role of an admin token allows: every route and method, for each role. */
import { describe, expect, test } from 'vitest';
import { forFile, forTest } from '../../support/opened.ts';
import { ROLES } from '../../../src/config/admin-tokens.ts';
import { type AdminRoute, PROBES, ROUTES } from '../../../src/operations/api.ts';
import { auditOf, logOf, messageOf } from '../../support/admin.ts';
import { startTestGateway } from '../../support/gateway.ts';

const pairs = ROLES.map((role) => `${role}-1:${role}=token-of-${role}`);
const gateway = await forFile(startTestGateway({ env: { ADMIN_TOKEN: ['root=token-of-root', ...pairs].join(',') } }));

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const routes = Object.values<AdminRoute>(ROUTES);

const send = (role: string, method: string, path: string) =>
  gateway.adminRaw(method, path.replace('{keyId}', 'key_none').replace('{class}', 'list'), {
    headers: { authorization: `Bearer token-of-${role}`, 'content-type': 'application/json' },
    ...(method === 'GET' || method === 'HEAD' ? {} : { body: '{}' }),
  });

describe.each(ROLES)('the role %s', (role) => {
  test('is let in by each route that names it, with HEAD as with GET, and gets 403 from all others', async () => {
    for (const { method, path, roles } of routes) {
      for (const sent of method === 'GET' ? ['GET', 'HEAD'] : [method]) {
        const { status } = await send(role, sent, path);
        expect([sent, path, status === 403]).toEqual([sent, path, roles !== null && !roles.includes(role)]);
      }
    }
  });

  test('gets 405 for every method that a path does not have', async () => {
    // `import` could be the id of a key: then those methods are those of a key.
    const paths = new Set(routes.map((route) => route.path).filter((path) => path !== ROUTES.importKeys.path));
    for (const path of paths) {
      const known = routes.filter((route) => route.path === path).map(({ method }) => method);
      const others = METHODS.filter((method) => !known.some((one) => one === (method === 'HEAD' ? 'GET' : method)));
      for (const method of others)
        expect([method, path, (await send(role, method, path)).status]).toEqual([method, path, 405]);
    }
  });

  // The store needs to know nothing of itself.
  test.skipIf(role === 'changes')('is shown by /api/whoami', async () => {
    expect((await send(role, 'GET', '/api/whoami')).json).toEqual({ who: `${role}-1`, role });
  });
});

test('a token without a role may do everything, and so may everybody without tokens', async () => {
  expect((await send('root', 'GET', '/api/whoami')).json).toEqual({ who: 'root', role: 'admin' });
  const open = await forTest(startTestGateway());
  expect((await open.admin('GET', '/api/whoami')).json).toEqual({ who: 'anonymous', role: 'admin' });
});

test('only the probes need no role', () => {
  expect(Object.values<AdminRoute>({ ...PROBES, ...ROUTES }).filter(({ roles }) => roles === null)).toEqual(
    Object.values(PROBES),
  );
});

test('a refusal says why, changes nothing, and is in the log each time, in the audit once an hour per token and route', async () => {
  const own = await forTest(
    startTestGateway({ env: { ADMIN_TOKEN: 'root=r,eve:viewer=token-of-eve,joe:keys=token-of-joe' } }),
  );
  const purge = (who: string) =>
    own.adminRaw('POST', '/api/cache/purge', {
      headers: { authorization: `Bearer token-of-${who}`, 'content-type': 'application/json' },
      body: '{"tags":["all"]}',
    });
  const refused = await purge('eve');
  expect([refused.status, messageOf(refused)]).toEqual([
    403,
    'The token of eve has the role viewer, which does not allow POST /api/cache/purge: that takes the role operator or admin. Use a token with such a role.',
  ]);
  await purge('eve');
  await purge('joe');
  own.clock.advance(3_600_000);
  await purge('eve');
  const target = 'POST /api/cache/purge';
  const needs = ['operator', 'admin'];
  const entry = (who: string, role: string) => ({
    who,
    action: 'access.refuse',
    target,
    from: null,
    to: { role, needs },
  });
  expect(await auditOf(own)).toMatchObject([entry('eve', 'viewer'), entry('joe', 'keys'), entry('eve', 'viewer')]);
  expect(logOf(own, 'admin request refused').map(({ who, reason }) => `${String(who)}: ${String(reason)}`)).toEqual([
    'eve: not allowed for the role viewer',
    'eve: not allowed for the role viewer',
    'joe: not allowed for the role keys',
    'eve: not allowed for the role viewer',
  ]);
});
