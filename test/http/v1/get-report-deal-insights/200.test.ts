import { expect, test } from 'vitest';
import { forFile } from '../../../support/opened.ts';
import { startTestGateway } from '../../../support/gateway.ts';
import { dealInsights } from '../../../support/records.ts';
import { GET_REPORT_DEAL_INSIGHTS } from '../../common/endpoints.ts';
import { keyFor, newSubject, putSubject } from '../../common/subject.ts';

const gateway = await forFile(startTestGateway());

test('the insights are passed on as they are, internal members left out', async () => {
  const subject = newSubject();
  const { id, workspaceId } = subject;
  gateway.store.dealInsights.set(id, {
    ...dealInsights({ evaluationId: id, workspaceId }),
    modelRun: 'internal',
    insights: { risk: 'medium', blockers: [{ topic: 'budget', weight: 0.4, costCents: 7 }], none: null, '': [] },
  });
  const key = await keyFor(gateway, subject, { scopes: ['reports.read'] });
  const reply = await gateway.get(GET_REPORT_DEAL_INSIGHTS.path(subject), { key });
  expect(reply.status).toBe(200);
  expect(reply.text).toBe(
    JSON.stringify({
      evaluation_id: id,
      link: 'https://app.example.com/evaluations/ev_1',
      deal_insights: { risk: 'medium', blockers: [{ topic: 'budget', weight: 0.4 }], none: null, '': [] },
    }),
  );
});

test('no insights are an empty object', async () => {
  const subject = newSubject();
  const { id, workspaceId } = subject;
  gateway.store.put({ dealInsights: [dealInsights({ evaluationId: id, workspaceId, permalink: '', insights: {} })] });
  const reply = await gateway.get(GET_REPORT_DEAL_INSIGHTS.path(subject), { key: await keyFor(gateway, subject) });
  expect(reply.text).toBe(`{"evaluation_id":"${id}","link":"","deal_insights":{}}`);
});

test('Q5: those of a report that is not completed are served if the store has them', async () => {
  const subject = putSubject(gateway.store, newSubject(), { state: 'SCORING' });
  const reply = await gateway.get(GET_REPORT_DEAL_INSIGHTS.path(subject), { key: await keyFor(gateway, subject) });
  expect(reply.status).toBe(200);
});
