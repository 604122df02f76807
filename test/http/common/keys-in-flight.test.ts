/** K10: after every wait, for the store or another process, the key that is in force then decides. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Reply } from '../../support/gateway.ts';
import { forFile } from '../../support/opened.ts';
import { sendError } from '../../support/store-server.ts';
import { BACKENDS, World } from '../../support/world.ts';
import { type EndpointRow, ENDPOINTS, GET_CALL, LIST_CALLS, SINGLE_READS } from './endpoints.ts';
import { newSubject, putSubject } from './subject.ts';

const HOUR_MS = 3_600_000;
const PLENTY = 1_000_000;

/** A refusal, and what would betray that there was an answer. */
function refusal({ status, headers, text }: Reply): readonly unknown[] {
  const betraying = headers['etag'] ?? headers['age'] ?? headers['cache-status'] ?? headers['x-records-omitted'];
  return [status, headers['x-error-code'], text, betraying];
}

describe.each(BACKENDS)('a key that changes while its read waits (%s)', async (kind) => {
  const world = await forFile(World.start(kind));
  const { store, clock } = world;

  /** A read that waits for the store at one gateway, by a key of two workspaces; `end` lets the store answer. */
  async function begin({ path, scope }: EndpointRow, { isStored = true } = {}) {
    const subject = isStored ? putSubject(store) : newSubject();
    const other = randomUUID();
    const { keyId, token: key } = await world.here.issue({
      workspaceIds: [subject.workspaceId, other],
      expiresAt: new Date(clock.nowMs() + HOUR_MS).toISOString(),
      perMinute: PLENTY,
      perHour: PLENTY,
    });
    const hold = store.hold();
    const calls = store.calls();
    const reply = world.here.get(path(subject), { key });
    await store.waitForCalls(calls + 1);
    /** Changes the key by way of another gateway, and waits until the change is in force at this one. */
    const change = async (method: string, body?: object): Promise<void> => {
      const before = await own();
      await world.change(method, `/api/keys/${keyId}`, body, world.there);
      await world.eventually(async () => expect(await own()).not.toBe(before));
    };
    /** The answer to a look at the key itself; its limit of 60 per minute is not reached. */
    const own = async (): Promise<string> => {
      const { status, json } = await world.here.get('/v2/key', { key });
      return JSON.stringify([status, status === 200 ? json : null]).replace(/"rate_limit".*/, '');
    };
    const end = (): Promise<Reply> => {
      hold.release();
      return reply;
    };
    return { subject, other, scope, change, end };
  }

  describe.each(ENDPOINTS)('$name', (endpoint) => {
    test.each([
      ['revoked', 'DELETE', undefined],
      ['deprecated', 'PATCH', { status: 'deprecated' }],
    ])('is refused once the key is %s', async (_what, method, body) => {
      const { change, end } = await begin(endpoint);
      await change(method, body);
      expect(refusal(await end())).toEqual([403, 'key_inactive', endpoint.forbidden, undefined]);
    });

    test('is refused once the key has expired', async () => {
      const { end } = await begin(endpoint);
      clock.advance(2 * HOUR_MS);
      expect(refusal(await end())).toEqual([403, 'key_inactive', endpoint.forbidden, undefined]);
    });

    test('is refused once the key lacks the scope', async () => {
      const { scope, change, end } = await begin(endpoint);
      const scopes = ['reports.read', 'calls.read', 'coaching.read'].filter((one) => one !== scope);
      await change('PATCH', { scopes });
      expect(refusal(await end())).toEqual([403, 'scope_missing', endpoint.forbidden, undefined]);
    });

    test('is answered once the key has changed in other ways', async () => {
      const { subject, change, end } = await begin(endpoint);
      await change('PATCH', { name: 'renamed', workspaceIds: [subject.workspaceId, randomUUID(), randomUUID()] });
      expect((await end()).status).toBe(200);
    });
  });

  test.each(ENDPOINTS.filter(({ surface }) => surface === 'v1'))(
    '$name is refused once the key lacks the workspace',
    async (endpoint) => {
      const { other, change, end } = await begin(endpoint);
      await change('PATCH', { workspaceIds: [other] });
      expect(refusal(await end())).toEqual([403, 'workspace_forbidden', endpoint.forbidden, undefined]);
    },
  );

  test.each(SINGLE_READS.filter(({ surface }) => surface === 'v2'))(
    '$name has no such record once the key lacks its workspace',
    async (endpoint) => {
      const { other, change, end } = await begin(endpoint);
      await change('PATCH', { workspaceIds: [other] });
      expect(refusal(await end())).toEqual([404, 'not_found', endpoint.notFound, undefined]);
    },
  );

  test('list calls shows those of the workspaces that are left', async () => {
    const { subject, other, change, end } = await begin(LIST_CALLS);
    const left = putSubject(store, newSubject(other));
    await change('PATCH', { workspaceIds: [other] });
    const { status, text, json } = await end();
    expect([status, json]).toMatchObject([200, { calls: [{ id: left.id }], pagination: { total_count: 1 } }]);
    expect(text).not.toContain(subject.id);
  });

  test('is refused whatever the store said: also that there is no record, and that it fails', async () => {
    const absent = await begin(GET_CALL, { isStored: false });
    await absent.change('DELETE');
    expect(refusal(await absent.end())).toEqual([403, 'key_inactive', GET_CALL.forbidden, undefined]);
    const restore = store.override(/^/, (_request, response) => sendError(response, 500, 'FAILURE'));
    const failed = await begin(GET_CALL);
    await failed.change('DELETE');
    expect(refusal(await failed.end())).toEqual([403, 'key_inactive', GET_CALL.forbidden, undefined]);
    restore();
  });
});
