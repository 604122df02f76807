/** The rights of each role of an admin token, on every route and method, however the path is spelt. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { forFile, forTest } from '../../support/opened.ts';
import { type Role, ROLES } from '../../../src/config/admin-tokens.ts';
import { type AdminRoute, PROBES, ROUTES } from '../../../src/operations/api.ts';
import { auditOf, logOf, messageOf } from '../../support/admin.ts';
import { cases } from '../../support/cases.ts';
import { startTestGateway } from '../../support/gateway.ts';

const pairs = ROLES.map((role) => `${role}-1:${role}=token-of-${role}`);
const gateway = await forFile(startTestGateway({ env: { ADMIN_TOKEN: ['root=token-of-root', ...pairs].join(',') } }));

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const routes = Object.values<AdminRoute>(ROUTES);

/** The roles as operators read of them (docs/configuration.md, Secrets), and not as the routes declare them. */
const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD';
const isOfKeys = (path: string): boolean => /^\/api\/key(?:s|-use|-export|-loss)(?:\/|$)/.test(path);
const holdsSecrets = (path: string): boolean => path === '/api/key-export' || path.startsWith('/api/state');
/** For whoever may ask anything: what the listener offers, and who one is. */
const isOfAll = (path: string): boolean => path === '/openapi.json' || path === '/api/whoami';
const isOfView = (method: string, path: string): boolean => isRead(method) && !holdsSecrets(path);
const ALLOWED: Readonly<Record<Role, (method: string, path: string) => boolean>> = {
  viewer: isOfView,
  operator: (method, path) => isOfView(method, path) || path.startsWith('/api/cache/'),
  keys: (_, path) => isOfKeys(path) || isOfAll(path),
  changes: (method, path) => method === 'POST' && path === '/api/changes',
  admin: () => true,
};

const send = (role: string, method: string, path: string) =>
  gateway.adminRaw(method, path.replace('{keyId}', 'key_none').replace('{class}', 'list'), {
    headers: { authorization: `Bearer token-of-${role}`, 'content-type': 'application/json' },
    ...(isRead(method) ? {} : { body: '{}' }),
  });

/** A path as it stands, and other spellings of it: they may be nothing at all, but never a way round its rule. */
const SPELLINGS: readonly ((path: string) => string)[] = [
  (path) => path,
  (path) => `${path}/`,
  (path) => `/${path}`,
  (path) => path.replace('/api', '/API'),
  (path) => path.replace('/api', '/%61pi'),
  (path) => path.replace(/\/(?=[^/]*$)/, '%2F'),
  (path) => path.replace('/api', '/livez/../api'),
  (path) => `${path};x=1`,
  (path) => `${path}?x=1`,
  (path) => `${path}%00`,
];
const NAMES = fc.oneof(fc.constantFrom('list', 'key_none'), fc.string({ minLength: 1, maxLength: 20 }));

test('nobody gets past the rule of a role, whatever the name in a path, and however the path is spelt', async () => {
  const asked = fc.record({
    role: fc.constantFrom(...ROLES),
    route: fc.constantFrom(...routes),
    spell: fc.constantFrom(...SPELLINGS),
    // Other paths: `import` is a route of its own, and dots are taken away.
    name: NAMES.filter((name) => !['.', '..', 'import'].includes(name)).map(encodeURIComponent),
  });
  await fc.assert(
    fc.asyncProperty(asked, async ({ role, route: { method, path }, spell, name }) => {
      const { status } = await send(role, method, spell(path.replace(/\{\w+\}/, () => name)));
      const isSpeltAsDeclared = spell === SPELLINGS[0];
      const refused = isSpeltAsDeclared ? [403] : [400, 403, 404, 405];
      const isRefused = refused.includes(status);
      const may = ALLOWED[role](method, path);
      // Another spelling may be refused to those who may, too.
      expect([role, method, path, isRefused]).toEqual([role, method, path, !may || (isRefused && !isSpeltAsDeclared)]);
    }),
    { numRuns: cases(300) },
  );
});

describe.each(ROLES)('the role %s', (role) => {
  test('is let in by each route that is for it, with HEAD as with GET, and gets 403 from all others', async () => {
    for (const { method, path, roles } of routes) {
      for (const sent of method === 'GET' ? ['GET', 'HEAD'] : [method]) {
        const may = ALLOWED[role](sent, path);
        const { status } = await send(role, sent, path);
        const declared = roles === null || roles.includes(role);
        expect([sent, path, status !== 403, declared]).toEqual([sent, path, may, may]);
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
