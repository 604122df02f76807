import { expect, test } from 'vitest';
import { forFile } from '../../../support/opened.ts';
import { startTestGateway } from '../../../support/gateway.ts';
import { aScorecard } from '../../../support/records.ts';
import { GET_RUBRIC } from '../../common/endpoints.ts';
import { keyFor, newSubject } from '../../common/subject.ts';

const gateway = await forFile(startTestGateway());

test('the rubric is passed on as it is, internal members left out', async () => {
  const subject = newSubject();
  const { scorecardId, workspaceId } = subject;
  gateway.store.scorecards.set(scorecardId, {
    ...aScorecard({ _id: scorecardId, workspaceId }),
    modelRun: 'internal',
    rubric: { sections: [{ title: 'Opening', weight: 0.25, reviewerNotes: 'internal' }], version: 3 },
  });
  const key = await keyFor(gateway, subject, { scopes: ['coaching.read'] });
  const reply = await gateway.get(GET_RUBRIC.path(subject), { key });
  expect(reply.status).toBe(200);
  expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(reply.text).toBe(
    JSON.stringify({
      scorecard: {
        id: scorecardId,
        name: 'Discovery scorecard',
        content: { sections: [{ title: 'Opening', weight: 0.25 }], version: 3 },
      },
    }),
  );
});

test('an empty rubric is an empty object', async () => {
  const subject = newSubject();
  const { scorecardId, workspaceId } = subject;
  gateway.store.put({ scorecards: [aScorecard({ _id: scorecardId, workspaceId, name: '', rubric: {} })] });
  const reply = await gateway.get(GET_RUBRIC.path(subject), { key: await keyFor(gateway, subject) });
  expect(reply.text).toBe(`{"scorecard":{"id":"${scorecardId}","name":"","content":{}}}`);
});
