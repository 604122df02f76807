/** A4: lists and transcript pages carry the links to the first, previous, next and last page, as far as there are such. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { anEvaluation, aTranscript } from '../../support/records.ts';
import { newSubject } from './subject.ts';

const gateway = await forFile(startTestGateway());

function linksOf(reply: Reply): Readonly<Record<string, string>> {
  const links = String(reply.headers['link'] ?? '').matchAll(/<([^>]*)>; rel="([a-z]+)"/g);
  return Object.fromEntries([...links].map(([, target = '', rel = '']) => [rel, target]));
}

/** Reads the page and all that `rel` leads to from it, as a client resolves a link. */
async function walk(path: string, key: string, rel: 'next' | 'prev'): Promise<readonly Reply[]> {
  const reply = await gateway.get(path, { key });
  expect(reply.status).toBe(200);
  const target = linksOf(reply)[rel];
  if (target === undefined) return [reply];
  const { pathname, search } = new URL(target, `http://gateway${path}`);
  return [reply, ...(await walk(`${pathname}${search}`, key, rel))];
}

function putCalls(count: number): { readonly workspaceId: string; readonly ids: readonly string[] } {
  const { workspaceId } = newSubject();
  const ids = Array.from({ length: count }, (_, index) => `ev_${index}_${randomUUID()}`);
  for (const [index, _id] of ids.entries()) {
    const createdAtMs = Date.UTC(2026, 0, 1) - index * 1000;
    gateway.store.evaluations.set(
      _id,
      anEvaluation({ _id, workspaceId, createdAtMs, title: 'Ångström & Söhne, 100 %' }),
    );
  }
  return { workspaceId, ids };
}

function idsIn(replies: readonly Reply[]): readonly string[] {
  return replies.flatMap(({ text }) => [...text.matchAll(/\{"id":"(ev_[^"]+)"/g)].map(([, id = '']) => id));
}

test('`next` leads through all calls once, in order, and `prev` back', async () => {
  const { workspaceId, ids } = putCalls(7);
  const { token: key } = await gateway.issue({ workspaceIds: [workspaceId, randomUUID()] });
  const query = `workspaceId=${workspaceId}&search=${encodeURIComponent('Söhne, 100 %')}`;
  const forth = await walk(`/v2/calls?pageSize=3&${query}`, key, 'next');
  expect(forth).toHaveLength(3);
  expect(idsIn(forth)).toEqual(ids);
  const back = await walk(`/v2/calls?pageSize=3&page=3&${query}`, key, 'prev');
  expect(idsIn(back.toReversed())).toEqual(ids);
});

test('`next` leads through all reports', async () => {
  const { workspaceId, ids } = putCalls(5);
  const { token: key } = await gateway.issue({ workspaceIds: [workspaceId] });
  const replies = await walk(`/v1/workspaces/${workspaceId}/reports?limit=2`, key, 'next');
  expect(replies).toHaveLength(3);
  expect(idsIn(replies)).toEqual(ids);
});

test('`next` leads through all turns of a transcript', async () => {
  const { workspaceId, id } = newSubject();
  const body = Array.from({ length: 9 }, (_, index) => `Dana: turn ${index}`).join('\n');
  gateway.store.put({ transcripts: [aTranscript({ evaluationId: id, workspaceId, body })] });
  const { token: key } = await gateway.issue({ workspaceIds: [workspaceId] });
  const replies = await walk(`/v2/calls/${id}/transcript?pageSize=4&maxChars=1000`, key, 'next');
  const indexes = replies.flatMap(({ text }) =>
    [...text.matchAll(/\{"index":(\d+)/g)].map(([, index]) => Number(index)),
  );
  expect(replies).toHaveLength(3);
  expect(indexes).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

test('the links are exact, on a 304 and a HEAD too, and only those of pages that there are', async () => {
  const { workspaceId } = putCalls(5);
  const { token: key } = await gateway.issue({ workspaceIds: [workspaceId] });
  const path = '/v2/calls?page=2&pageSize=2';
  const linkOf = (page: number): string => `?page=${page}&pageSize=2&workspaceId=${workspaceId}`;
  const expected = { first: linkOf(1), prev: linkOf(1), next: linkOf(3), last: linkOf(3) };
  expect(linksOf(await gateway.get(path, { key }))).toEqual(expected);
  expect(linksOf(await gateway.get(path, { key, method: 'HEAD' }))).toEqual(expected);
  expect(linksOf(await gateway.get(path, { key, headers: { 'if-none-match': '*' } }))).toEqual(expected);

  const beyond = await gateway.get('/v2/calls?page=900&pageSize=2', { key });
  expect(linksOf(beyond)).toEqual({ first: linkOf(1), prev: linkOf(3), last: linkOf(3) });
  const { token: other } = await gateway.issue({ workspaceIds: [randomUUID(), randomUUID()] });
  expect(linksOf(await gateway.get('/v2/calls', { key: other }))).toEqual({ first: '?page=1&pageSize=50' });
});

test('a key of several workspaces is led on in the one that it narrowed to, whoever read the page before', async () => {
  const { workspaceId, ids } = putCalls(4);
  const { token: own } = await gateway.issue({ workspaceIds: [workspaceId] });
  const { token: wide } = await gateway.issue({ workspaceIds: [workspaceId, putCalls(3).workspaceId] });
  expect(idsIn(await walk('/v2/calls?pageSize=2', own, 'next'))).toEqual(ids);
  expect(idsIn(await walk(`/v2/calls?pageSize=2&workspaceId=${workspaceId}`, wide, 'next'))).toEqual(ids);
});

test('a single record has no links', async () => {
  const { workspaceId, ids } = putCalls(1);
  const { token: key } = await gateway.issue({ workspaceIds: [workspaceId] });
  expect(linksOf(await gateway.get(`/v2/calls/${ids[0]}`, { key }))).toEqual({});
});
