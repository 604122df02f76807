import { expect, test } from 'vitest';
import { createMemoryRegistry } from '../../../src/keys/memory-registry.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { createCacheRig } from './cache-rig.ts';
import { startAdmin, WORKSPACE } from './harness.ts';

const lost = () => Promise.reject(new Error('Command timed out'));

test('of a change whose answer is lost the audit has what was asked, without any secret', async () => {
  const registry = createMemoryRegistry({ clock: new ManualClock() });
  const { key, token } = await registry.create({
    name: 'n',
    workspaceIds: [WORKSPACE],
    scopes: ['calls.read'],
    expiresAtMs: null,
    limits: { perMinute: null, perHour: null },
  });
  const { controls } = createCacheRig(new ManualClock());
  const admin = await startAdmin({
    registry: Object.assign(registry, { setStatus: lost, rotate: lost, importKeys: lost }),
    cache: {
      ...controls,
      purge: lost,
      timesControl: { set: lost, reset: lost },
      maintenance: { current: () => null, begin: lost, end: lost },
    },
  });
  const hash = 'ab'.repeat(32);
  const imported = { keyId: 'key_2', hash, name: 'i', workspaceIds: [WORKSPACE], scopes: ['calls.read'] };
  const one = `/api/keys/${key.keyId}`;
  const requests: readonly (readonly [string, string, unknown, object | null])[] = [
    ['PUT', '/api/cache/ttl/list', { fresh: '45s', error: '0s' }, { fresh: '45s', error: '0s' }],
    ['DELETE', '/api/cache/ttl/list', undefined, null],
    ['POST', '/api/cache/purge', { tags: ['all'], mode: 'soft' }, { mode: 'soft', tagCount: 1, tags: ['all'] }],
    ['PUT', '/api/cache/maintenance', { for: '30m' }, { until: '2026-01-15T12:30:00.000Z' }],
    ['DELETE', '/api/cache/maintenance', undefined, null],
    ['PATCH', one, { status: 'deprecated' }, { status: 'deprecated' }],
    ['DELETE', one, undefined, { status: 'revoked' }],
    ['POST', `${one}/rotate`, { overlap: '2h' }, { overlap: '2h' }],
    ['POST', '/api/keys/import', { keys: [imported] }, { keys: 1, keyIds: ['key_2'] }],
  ];
  const asked: unknown[] = [];
  for (const [method, path, body, wanted] of requests) {
    expect((await admin.call(method, path, body)).status, `${method} ${path}`).toBe(503);
    asked.unshift({ outcome: 'unknown', asked: wanted });
  }
  const entries = await admin.audit.entries();
  await admin.close();
  expect(entries.map(({ to }) => to)).toEqual(asked);
  for (const secret of [token, key.hash, hash]) expect(JSON.stringify(entries)).not.toContain(secret);
});
