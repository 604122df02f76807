/** GET /api/keys in pages, and what walks them. */
import { beforeEach, expect, test } from 'vitest';
import { hashToken } from '../../../src/keys/token.ts';
import { forTest } from '../../support/opened.ts';
import { keysSchema, messageOf, TOKENS } from '../../support/admin.ts';
import { runJson } from '../../support/cli.ts';
import { type Reply, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { WORKSPACE_A } from '../../support/records.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await forTest(startTestGateway({ env: TOKENS }));
});

const call = (method: string, path: string, body?: unknown): Promise<Reply> => gateway.admin(method, path, body);

function imported(keyId: string, createdAt: string): Record<string, unknown> {
  const hash = hashToken(keyId);
  return { keyId, hash, name: 'n', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'], createdAt };
}

/** Keys whose order of creation is not that of their ids, some of one millisecond. */
async function importMany(count: number): Promise<readonly string[]> {
  const keys = Array.from({ length: count }, (_, i) => ({
    keyId: `k_${(i * 7919) % 10_007}`,
    createdAt: new Date(Date.UTC(2025, 0, 1) + Math.floor(i / 3)).toISOString(),
  }));
  const body = { keys: keys.map(({ keyId, createdAt }) => imported(keyId, createdAt)) };
  expect((await call('POST', '/api/keys/import', body)).status).toBe(200);
  return keys.toSorted((a, b) => (a.createdAt + a.keyId < b.createdAt + b.keyId ? -1 : 1)).map(({ keyId }) => keyId);
}

async function pages(limit: string): Promise<readonly (readonly string[])[]> {
  const found: (readonly string[])[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const query: string = cursor === '' ? limit : `${limit}&cursor=${encodeURIComponent(cursor)}`;
    const page = keysSchema.parse((await call('GET', `/api/keys?${query}`)).json);
    found.push(page.keys.map(({ keyId }) => keyId));
    cursor = page.nextCursor;
  }
  return found;
}

test('comes in pages of 100, or of a limit, in the order of creation; none is missing or double', async () => {
  const all = await importMany(250);
  for (const [limit, sizes] of [
    ['', [100, 100, 50]],
    ['limit=125', [125, 125]],
    ['limit=249', [249, 1]],
    ['limit=1000', [250]],
  ] as const) {
    const walked = await pages(limit);
    expect(walked.map(({ length }) => length)).toEqual(sizes);
    expect(walked.flat()).toEqual(all);
  }
});

test('a key that is made between two pages moves no other out of sight', async () => {
  const all = await importMany(4);
  const first = keysSchema.parse((await call('GET', '/api/keys?limit=2')).json);
  await call('POST', '/api/keys/import', { keys: [imported('early', '2020-01-01T00:00:00Z')] });
  const cursor = encodeURIComponent(first.nextCursor ?? '');
  const second = keysSchema.parse((await call('GET', `/api/keys?limit=2&cursor=${cursor}`)).json);
  expect([...first.keys, ...second.keys].map(({ keyId }) => keyId)).toEqual(all);
  expect(second.nextCursor).toBeNull();
});

test('`keys list` walks all pages', async () => {
  const all = await importMany(2001);
  const listed: unknown = await runJson(['keys', 'list', '--admin', gateway.adminUrl], {
    env: { ADMIN_TOKEN: 'correct-horse' },
  });
  expect(
    keysSchema
      .omit({ nextCursor: true })
      .parse(listed)
      .keys.map(({ keyId }) => keyId),
  ).toEqual(all);
});

test.each([
  ['limit=0', 'The query parameter limit: given "0"; allowed: an integer from 1 to 1000; 100 if it is left out.'],
  ['limit=1001', 'The query parameter limit: given "1001"; allowed: an integer from 1 to 1000; 100 if it is left out.'],
  ['limit=', 'The query parameter limit: given ""; allowed: an integer from 1 to 1000; 100 if it is left out.'],
  ['cursor=', 'The query parameter cursor: given ""; allowed: the nextCursor of the page before.'],
  ['cursor=1.a%20b', 'The query parameter cursor: given "1.a b"; allowed: the nextCursor of the page before.'],
  ['limit=1&limit=2', 'The query parameter limit may be given only once.'],
  ['page=2', 'Unknown query parameter "page". Known here: limit, cursor.'],
])('?%s is 400', async (query, message) => {
  const answer = await call('GET', `/api/keys?${query}`);
  expect([answer.status, messageOf(answer)]).toEqual([400, message]);
});
