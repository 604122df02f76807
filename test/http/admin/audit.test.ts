/** The audit keeps changes of keys, and refusals, apart from all else: nobody can push them out. */
import { describe, expect, test } from 'vitest';
import { auditOf } from '../../support/admin.ts';
import { forFile, forTest } from '../../support/opened.ts';
import { BACKENDS, World } from '../../support/world.ts';

const ADMIN_TOKEN = 'root=token-of-root,eve:operator=token-of-eve,vic:viewer=token-of-vic';

describe.each(BACKENDS)('the audit (%s)', async (kind) => {
  const world = await forFile(World.start(kind, { env: { ADMIN_TOKEN } }));
  const { here } = world;

  const as = (who: string, method: string, path: string, body: object) =>
    here.adminRaw(method, path, {
      headers: { authorization: `Bearer token-of-${who}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });

  test('has who got a key, and who was refused what, also after more than a thousand other changes', async () => {
    const { keyId } = await here.issue();
    expect((await as('vic', 'POST', '/api/cache/purge', { tags: ['all'] })).status).toBe(403);
    for (let change = 0; change < 1050; change += 1) {
      const ofRecord = { tags: [`evaluation:ev_${change}`], exact: true };
      expect((await as('eve', 'POST', '/api/cache/purge', ofRecord)).status).toBe(200);
    }
    const entries = await auditOf(here);
    expect(entries.filter(({ action }) => action === 'cache.purge')).toHaveLength(1000);
    expect(entries).toContainEqual(expect.objectContaining({ who: 'root', action: 'key.create', target: keyId }));
    expect(entries).toContainEqual(expect.objectContaining({ who: 'vic', action: 'access.refuse' }));
  });

  test('shows the newest first, of whatever kind, and of both gateways', async () => {
    const { keyId } = await here.issue();
    world.clock.advance(1000);
    await as('eve', 'POST', '/api/cache/purge', { tags: ['all'] });
    world.clock.advance(1000);
    await world.change('DELETE', `/api/keys/${keyId}`, undefined, world.there);
    const actions = (await auditOf(here)).map(({ action }) => action);
    expect(actions.slice(0, 3)).toEqual(['key.revoke', 'cache.purge', 'key.create']);
  });
});

test('Redis is rid of what the audit does not keep', async () => {
  const world = await forTest(World.start('redis'));
  const { keyId } = await world.here.issue();
  const raw = await world.raw();
  const purge = {
    at: '2026-01-15T12:00:00.000Z',
    who: 'eve',
    action: 'cache.purge',
    target: 'cache',
    from: null,
    to: null,
  };
  for (let entry = 0; entry < 13_000; entry += 1000) {
    const texts = Array.from({ length: 1000 }, (_, index) => JSON.stringify({ id: `${entry + index}`, ...purge }));
    await raw.lpush('evalgate:audit', ...texts);
  }
  await world.change('POST', '/api/cache/purge', { tags: ['class:list'] });
  expect(await raw.llen('evalgate:audit')).toBe(1001);
  const kept = await auditOf(world.there);
  expect(kept).toHaveLength(1001);
  expect(kept[0]).toMatchObject({ to: { tags: ['class:list'] } });
  expect(kept.at(-1)).toMatchObject({ action: 'key.create', target: keyId });
});
