/** K2: nothing that a caller or the store says leaves the gateway in a span. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { Collector } from '../support/collector.ts';
import { startTestGateway } from '../support/gateway.ts';
import { anEvaluation, aTranscript, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';

const redis = await forFile(startRedis());
await redis.flush();
const collector = await forFile(Collector.start());
const gateway = await forFile(startTestGateway({ env: { ...collector.env, REDIS_URL: redis.url } }));
const key = await gateway.issueKey({ perMinute: 100_000, perHour: 100_000 });

/** A word that can't be in a span by chance. */
const word = fc.stringMatching(/^[a-z]{16}$/);
const manner = fc.constantFrom('whole', 'absent', 'malformed', 'failing', 'no-json');
const asked = fc.constantFrom(
  (id: string, text: string) => `/v1/workspaces/${WORKSPACE_A}/reports/${id}?q=${text}`,
  (id: string, text: string) => `/v1/workspaces/${id}/reports?search=${text}`,
  (_id: string, text: string) => `/v1/workspaces/${WORKSPACE_A}/reports?search=${text}`,
  (_id: string, text: string) => `/v2/calls?workspaceId=${WORKSPACE_A}&search=${text}`,
  (id: string, text: string) => `/v2/calls/${id}/transcript?${text}=1`,
  (id: string, text: string) => `/v1/${id}/${text}`,
  (id: string, text: string) => `/${id}?${text}`,
  (id: string, text: string) => `http://${id}/v2/calls?${text}`,
);

test('K2: no credential, path id, query, header or record is in what is exported', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({ id: word, text: word, token: word, header: word, said: word, asked, manner, isKnown: fc.boolean() }),
      async (one) => {
        const { id, text, token, header, said } = one;
        put(id, said);
        const takeBack = misbehave(one.manner, said);
        const reply = await gateway.get(one.asked(id, text), {
          key: one.isKnown ? key : token,
          headers: { 'user-agent': header, host: header, cookie: header, referer: header, tracestate: `${header}=1` },
          isUndocumented: true,
        });
        takeBack();
        expect(reply.status).toBeLessThan(501);
        for (const hidden of [id, text, token, header, said]) expect(exported()).not.toContain(hidden);
      },
    ),
    { numRuns: 100 },
  );
  const requests = (): number => collector.spans.filter(({ kind }) => kind === 2).length;
  await collector.until(() => requests() > 100);
  const all = exported();
  for (const hidden of [key, 'Bearer', 'evg_', WORKSPACE_A, WORKSPACE_B, gateway.store.token, gateway.store.url]) {
    expect(all).not.toContain(hidden);
  }
  const storePort = Number(new URL(gateway.store.url).port);
  const values = collector.spans.flatMap(({ attributes }) => Object.values(attributes));
  expect(values).not.toContain(storePort);
  // So that the above says something.
  expect(all).toContain('/v1/workspaces/{workspaceId}/reports/{reportId}');
  expect(new Set(collector.spans.map(({ name }) => name)).size).toBeGreaterThan(12);
});

function put(id: string, said: string): void {
  const evaluation = anEvaluation({ _id: id, title: said });
  gateway.store.put({ evaluations: [evaluation], transcripts: [aTranscript({ evaluationId: id })] });
}

/** The store's answers until the returned function is called. */
function misbehave(how: string, said: string): () => void {
  if (how === 'failing') return gateway.store.fail(500, { 'x-said': said });
  if (how === 'whole') return () => undefined;
  return gateway.store.override(/^/, (_request, response) => {
    const body = { absent: { code: 'NOT_FOUND', message: said }, malformed: { _id: said } }[how] ?? null;
    response.writeHead(how === 'absent' ? 404 : 200, { 'content-type': 'application/json' });
    response.end(body === null ? said : JSON.stringify(body));
  });
}

function exported(): string {
  return collector.posts.map(({ body }) => body.toString()).join('\n');
}
