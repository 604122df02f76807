/** Q3, A4: `after`, a walk through v2's list that loses nothing while calls come and go, and its links. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Reply } from '../support/gateway.ts';
import { startTestGateway } from '../support/gateway.ts';
import { forFile } from '../support/opened.ts';
import { anEvaluation } from '../support/records.ts';
import { LIST_CALLS } from './common/endpoints.ts';
import { newSubject, readerOf, type Subject } from './common/subject.ts';

// Lists are always asked for anew, so that each page shows what the store has.
const gateway = await forFile(startTestGateway({ env: { CACHE_LIST_FRESH: '0s', CACHE_LIST_STALE: '0s' } }));
let newestMs = 1_700_000_000_000;

function addCall({ workspaceId }: Subject, id: string): void {
  newestMs += 1000;
  gateway.store.evaluations.set(id, anEvaluation({ _id: id, workspaceId, createdAtMs: newestMs }));
}

function addCalls(subject: Subject, prefix: string, count: number): readonly string[] {
  const ids = Array.from({ length: count }, (_, index) => `${prefix}${String(index).padStart(4, '0')}_${subject.id}`);
  for (const id of ids) addCall(subject, id);
  return ids;
}

function idsOf({ json }: Reply): readonly string[] {
  return pageSchema.parse(json).calls.map(({ id }) => id);
}

const pageSchema = z.object({ calls: z.array(z.object({ id: z.string() })) });

/** The query of the link with that relation. */
function linkOf({ headers }: Reply, relation: string): string | null {
  const links = String(headers['link'] ?? '').split(', ');
  const found = links.find((link) => link.endsWith(`rel="${relation}"`));
  return found === undefined ? null : (/<(\?[^>]*)>/.exec(found)?.[1] ?? null);
}

describe('a walk', () => {
  test.each([1, 50, 100])('of pages of %i has each call once, in order, and ends', async (pageSize) => {
    const subject = newSubject();
    const ids = addCalls(subject, 'c', 230);
    const { ask } = await readerOf(gateway, LIST_CALLS, { subject });
    const seen: string[] = [];
    let query: string | null = `?after=&pageSize=${pageSize}`;
    for (let page = 1; query !== null; page += 1) {
      const reply = await ask({ query });
      expect(reply.json).toMatchObject({
        pagination: { page, page_size: pageSize, total_count: 230, total_pages: Math.ceil(230 / pageSize) },
      });
      expect(linkOf(reply, 'first')).toBe(`?after=&pageSize=${pageSize}&workspaceId=${subject.workspaceId}`);
      expect([linkOf(reply, 'prev'), linkOf(reply, 'last')]).toEqual([null, null]);
      seen.push(...idsOf(reply));
      query = linkOf(reply, 'next');
    }
    expect(seen).toEqual(ids.toReversed());
  });

  test('loses and repeats none of the calls that stay, while others are added above and removed', async () => {
    const subject = newSubject();
    const ids = addCalls(subject, 'c', 1000);
    const { ask } = await readerOf(gateway, LIST_CALLS, { subject });
    const removed = new Set<string>();
    const seen: string[] = [];
    let query: string | null = '?after=&pageSize=50';
    for (let page = 0; query !== null; page += 1) {
      const reply = await ask({ query });
      seen.push(...idsOf(reply));
      addCalls(subject, `n${page}_`, 10);
      // The last call of the page is removed as well: its place holds.
      for (const id of [seen.at(-1) ?? '', ids[37 * page] ?? '', ids[999 - 29 * page] ?? '']) {
        gateway.store.evaluations.delete(id);
        removed.add(id);
      }
      query = linkOf(reply, 'next');
    }
    expect(seen).toHaveLength(new Set(seen).size);
    expect(ids.filter((id) => !removed.has(id) && !seen.includes(id))).toEqual([]);
    expect(seen.filter((id) => !ids.includes(id))).toEqual([]);
  });

  test('passes by records that are damaged, however many follow one another', async () => {
    const subject = newSubject();
    const ids = addCalls(subject, 'c', 700);
    const damaged = new Set(ids.slice(150, 500));
    for (const id of damaged) {
      const { title: _, ...others } = z.looseObject({}).parse(gateway.store.evaluations.get(id));
      gateway.store.evaluations.set(id, others);
    }
    const { ask } = await readerOf(gateway, LIST_CALLS, { subject });
    const seen: string[] = [];
    let omitted = 0;
    for (let query: string | null = '?after=&pageSize=100'; query !== null;) {
      const reply: Reply = await ask({ query });
      expect(reply.status).toBe(200);
      omitted += Number(reply.headers['x-records-omitted'] ?? 0);
      seen.push(...idsOf(reply));
      query = linkOf(reply, 'next');
    }
    expect(seen).toEqual(ids.toReversed().filter((id) => !damaged.has(id)));
    expect(omitted).toBeGreaterThanOrEqual(damaged.size);
  });

  test.each([
    { what: 'none of the records that it counts', items: [], calls: 1 },
    {
      what: 'damaged records without end',
      items: Array.from({ length: 100 }, (_, number) => ({ _id: `ev_${number}` })),
      calls: 100,
    },
  ])('fails after $calls list calls if the store sends $what', async ({ items, calls }) => {
    const subject = newSubject();
    const restore = gateway.store.answer('/internal/v1/evaluations', { items, total: 1_000_000_000 });
    const before = gateway.store.calls('list');
    const { ask } = await readerOf(gateway, LIST_CALLS, { subject });
    const { status, headers } = await ask({ query: '?after=' });
    restore();
    expect([status, headers['x-error-code']]).toEqual([500, 'store_unavailable']);
    expect(gateway.store.calls('list') - before).toBe(calls);
  });

  test('costs the store one list call for 99 calls, and none while copies are fresh', async () => {
    const cached = await startTestGateway();
    const subject = newSubject();
    for (const id of addCalls(subject, 'c', 300)) cached.store.evaluations.set(id, gateway.store.evaluations.get(id));
    const { ask } = await readerOf(cached, LIST_CALLS, { subject });
    const walk = async (): Promise<void> => {
      for (let query: string | null = '?after='; query !== null; query = linkOf(await ask({ query }), 'next'));
    };
    await walk();
    expect(cached.store.calls('list')).toBe(4);
    await walk();
    expect(cached.store.calls('list')).toBe(4);
    await cached.close();
  });

  test('goes on through a cursor at any gateway, with filters in its links', async () => {
    const subject = newSubject();
    addCalls(subject, 'c', 5);
    const { ask } = await readerOf(gateway, LIST_CALLS, { subject });
    const query = `?pageSize=2&workspaceId=${subject.workspaceId}&search=e&scorecardId=x`;
    const reply = await ask({ query: `${query}&after=` });
    expect(Object.fromEntries(new URLSearchParams(linkOf(reply, 'first') ?? ''))).toEqual({
      after: '',
      pageSize: '2',
      search: 'e',
      scorecardId: 'x',
      workspaceId: subject.workspaceId,
    });
  });

  test('that is asked for twice is the same, and 304', async () => {
    const subject = newSubject();
    addCalls(subject, 'c', 120);
    const { ask } = await readerOf(gateway, LIST_CALLS, { subject });
    const first = await ask({ query: '?after=&pageSize=100' });
    const second = await ask({ query: linkOf(first, 'next') ?? '' });
    const again = await ask({
      query: linkOf(first, 'next') ?? '',
      headers: { 'if-none-match': String(second.headers['etag']) },
    });
    expect([second.status, again.status]).toEqual([200, 304]);
  });
});

describe('refused with 400', () => {
  test.each([
    ['after with page', '?after=&page=1', 'parameter_invalid', 'may not be given together'],
    ['what is no cursor', '?after=x', 'cursor_invalid', 'must be empty'],
    ['a cursor with an id that none has', '?after=WzEsImEgYiIsMF0', 'cursor_invalid', 'must be empty'],
    ['two cursors', '?after=&after=', 'parameter_invalid', 'after may be given only once'],
    ['a cursor that is too long', `?after=${'a'.repeat(1025)}`, 'parameter_invalid', 'after may hold at most'],
  ])('%s', async (_what, query, code, message) => {
    const { ask } = await readerOf(gateway, LIST_CALLS, { subject: newSubject() });
    const reply = await ask({ query });
    expect([reply.status, reply.headers['x-error-code']]).toEqual([400, code]);
    expect(reply.text).toContain(message);
  });
});
