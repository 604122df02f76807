/** The key registry through the admin listener, wherever it keeps its keys. */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hashToken } from '../../src/keys/token.ts';
import type { Reply, TestGateway } from '../support/gateway.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { BACKENDS, World } from '../support/world.ts';

const HOUR_MS = 3_600_000;
const keySchema = z.looseObject({
  keyId: z.string(),
  status: z.string(),
  expiresAt: z.string().nullable(),
  quotaId: z.string(),
  lastUsedAt: z.string().nullable(),
});
const shownSchema = z.object({ key: keySchema });
const issuedSchema = shownSchema.extend({ token: z.string() });

/** A key of another system: its token, and what is imported of it. */
function foreign(change: object = {}) {
  const token = `legacy-${randomUUID()}`;
  const key = { keyId: `old-${randomUUID()}`, hash: hashToken(token), name: 'old', workspaceIds: [WORKSPACE_A] };
  return { token, key: { ...key, scopes: ['calls.read'], ...change } };
}

describe.each(BACKENDS)('in %s', (place) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    const world = await World.start(place, { gateways: 1 });
    gateway = world.here;
    return () => world.close();
  });

  const use = async (key: string): Promise<number> => (await gateway.get('/v2/key', { key })).status;
  const show = async (keyId: string) => shownSchema.parse((await gateway.admin('GET', `/api/keys/${keyId}`)).json).key;
  const rotate = (keyId: string, overlap: string): Promise<Reply> =>
    gateway.admin('POST', `/api/keys/${keyId}/rotate`, { overlap });
  const setStatus = (keyId: string, status: string): Promise<Reply> =>
    status === 'revoked'
      ? gateway.admin('DELETE', `/api/keys/${keyId}`)
      : gateway.admin('PATCH', `/api/keys/${keyId}`, { status });
  const importKeys = (...keys: unknown[]): Promise<Reply> => gateway.admin('POST', '/api/keys/import', { keys });
  const listed = async () => {
    const { json } = await gateway.admin('GET', '/api/keys');
    return z.object({ keys: z.array(keySchema) }).parse(json).keys;
  };

  test('keys are listed in the order in which they were made', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 4; i += 1) {
      gateway.clock.advance(1);
      ids.push((await gateway.issue()).keyId);
    }
    const { key } = foreign({ createdAt: '2020-01-01T00:00:00Z' });
    await importKeys(key);
    const all = (await listed()).map(({ keyId }) => keyId);
    expect(all.filter((keyId) => ids.includes(keyId))).toEqual(ids);
    expect(all[0]).toBe(key.keyId);
  });

  test.each([
    ['an hour', '1h', null, HOUR_MS],
    ['nothing at all', '0s', null, 0],
    ['longer than it lives', '24h', 2 * HOUR_MS, 2 * HOUR_MS],
    ['shorter than it lives', '1h', 2 * HOUR_MS, HOUR_MS],
  ])(
    'K3: a key that is rotated with an overlap of %s ends then; its successor has its rights, quota and expiry',
    async (_what, overlap, livesMs, endsAfterMs) => {
      const { clock } = gateway;
      const expiry = livesMs === null ? {} : { expiresAt: new Date(clock.nowMs() + livesMs).toISOString() };
      const { keyId, token } = await gateway.issue({ name: 'turning', perHour: 11, ...expiry });
      const before = await show(keyId);
      const reply = await rotate(keyId, overlap);
      const { key: successor, token: next } = issuedSchema.parse(reply.json);
      expect(successor.keyId).not.toBe(keyId);
      expect(successor).toEqual({ ...before, keyId: successor.keyId });
      expect(await show(keyId)).toEqual({
        ...before,
        expiresAt: new Date(clock.nowMs() + endsAfterMs).toISOString(),
      });
      expect([await use(token), await use(next)]).toEqual([endsAfterMs === 0 ? 403 : 200, 200]);
      clock.advance(endsAfterMs);
      expect(await use(token)).toBe(403);
    },
  );

  test.each([
    ['none', null],
    ['one of its own', 2 * HOUR_MS],
  ])('K3: a key with an expiry of %s that is rotated twice hands it to both successors', async (_what, livesMs) => {
    const { clock } = gateway;
    const expiry = livesMs === null ? {} : { expiresAt: new Date(clock.nowMs() + livesMs).toISOString() };
    const { keyId } = await gateway.issue(expiry);
    const own = (await show(keyId)).expiresAt;
    const successors = [await rotate(keyId, '1h'), await rotate(keyId, '10m')];
    expect(successors.map(({ json }) => issuedSchema.parse(json).key.expiresAt)).toEqual([own, own]);
    expect((await show(keyId)).expiresAt).toBe(new Date(clock.nowMs() + HOUR_MS / 6).toISOString());
  });

  test('an expiry that is set after a rotation is the one of later successors', async () => {
    const { keyId } = await gateway.issue();
    await rotate(keyId, '1h');
    const expiresAt = new Date(gateway.clock.nowMs() + 2 * HOUR_MS).toISOString();
    await gateway.admin('PATCH', `/api/keys/${keyId}`, { expiresAt });
    expect(issuedSchema.parse((await rotate(keyId, '1h')).json).key.expiresAt).toBe(expiresAt);
  });

  test.each(['deprecated', 'revoked', 'expired'])('a key that is %s cannot be rotated', async (state) => {
    const expiresAt = new Date(gateway.clock.nowMs() + HOUR_MS).toISOString();
    const { keyId } = await gateway.issue({ expiresAt });
    if (state === 'expired') gateway.clock.advance(HOUR_MS);
    else await setStatus(keyId, state);
    const before = (await listed()).length;
    expect((await rotate(keyId, '1h')).status).toBe(409);
    expect(await listed()).toHaveLength(before);
  });

  test('K1: an imported key lets its holder in, and again replaces itself but keeps its quota', async () => {
    const { token, key } = foreign();
    expect((await importKeys({ ...key, quotaId: 'common' })).json).toEqual({
      added: 1,
      replaced: 0,
      unchanged: 0,
      leftOut: 0,
    });
    expect(await use(token)).toBe(200);
    const renamed = { ...key, name: 'renamed', status: 'deprecated' };
    expect((await importKeys(renamed, foreign().key)).json).toEqual({
      added: 1,
      replaced: 1,
      unchanged: 0,
      leftOut: 0,
    });
    expect(await show(key.keyId)).toMatchObject({ name: 'renamed', status: 'deprecated', quotaId: 'common' });
    expect(await use(token)).toBe(403);
  });

  test.each([
    ['the same id with another hash', (key: object) => ({ ...key, hash: hashToken(randomUUID()) }), 409],
    ['another id with the same hash', (key: object) => ({ ...key, keyId: `x-${randomUUID()}` }), 409],
    ['a hash that is none', (key: object) => ({ ...key, hash: 'a token, not a hash' }), 400],
  ])('an import that holds %s changes nothing at all, beside a key of before or of its own', async (...row) => {
    const [, contradict, status] = row;
    const { key } = foreign();
    await importKeys(key);
    const [fresh, twin] = [foreign(), foreign()];
    const before = await listed();
    expect((await importKeys(fresh.key, contradict(key))).status).toBe(status);
    expect((await importKeys(twin.key, contradict(twin.key))).status).toBe(400);
    expect(await listed()).toEqual(before);
    expect(await use(fresh.token)).toBe(401);
  });

  test('an import does not bring a revoked key back to life', async () => {
    const { token, key } = foreign({ status: 'revoked' });
    await importKeys(key);
    const other = foreign();
    const { status, json } = await importKeys({ ...key, status: 'active' }, other.key);
    expect([status, json]).toEqual([200, { added: 1, replaced: 0, unchanged: 0, leftOut: 1 }]);
    expect([(await show(key.keyId)).status, await use(token), await use(other.token)]).toEqual(['revoked', 403, 200]);
  });
});
