import { expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { GET_CALL, GET_CALL_SCORECARD, GET_RUBRIC } from '../common/endpoints.ts';
import { keyFor, newSubject, putSubject } from '../common/subject.ts';

const gateway = await forFile(startTestGateway());

test.each([GET_CALL, GET_CALL_SCORECARD, GET_RUBRIC])('Q3, Q4: $name takes no parameters', async (endpoint) => {
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject);
  const refused = async (query: string, message: string): Promise<void> => {
    const reply = await gateway.get(`${endpoint.path(subject)}?${query}`, { key });
    expect(reply.status).toBe(400);
    expect(reply.text).toBe(JSON.stringify({ error: { message } }));
  };
  await refused('page=1', "Unknown query parameter 'page'. This endpoint takes none.");
  await refused('=', "Unknown query parameter ''. This endpoint takes none.");
  await refused(
    'a=1&b&a=2',
    "Unknown query parameter 'a'. This endpoint takes none. Unknown query parameter 'b'. This endpoint takes none.",
  );
  expect(gateway.store.calls(endpoint.resource)).toBe(0);
  const bare = await gateway.get(`${endpoint.path(newSubject())}?`, { key });
  expect(bare.status).toBe(404);
});
