/** Whatever the store sends, the public forms are as the document says and hold nothing that is not listed there. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { z } from 'zod';
import { cases } from '../support/cases.ts';
import { startTestGateway } from '../support/gateway.ts';
import { WORKSPACE_A } from '../support/records.ts';
import type { StoreServer } from '../support/store-server.ts';
import {
  dealInsights,
  evaluation,
  evaluationOfAnyEmail,
  planted,
  PLANTED,
  scorecard,
  scoredCard,
} from './arbitrary-records.ts';

const recordSchema = z.record(z.string(), z.unknown());

interface Form {
  readonly name: string;
  readonly record: fc.Arbitrary<unknown>;
  /** Where the store has it, and the member that holds its id. */
  readonly put: (store: StoreServer) => Map<string, unknown>;
  readonly id: string;
  readonly paths: (id: string) => readonly string[];
}

const V1 = `/v1/workspaces/${WORKSPACE_A}/reports`;
const FORMS: readonly Form[] = [
  {
    name: 'reports and calls, alone and in lists',
    record: evaluation,
    put: (store) => store.evaluations,
    id: '_id',
    paths: (id) => [`${V1}/${id}`, `/v2/calls/${id}`, `${V1}?search=${id}`, `/v2/calls?search=${id}`],
  },
  {
    name: 'calls with any e-mail address',
    record: evaluationOfAnyEmail,
    put: (store) => store.evaluations,
    id: '_id',
    paths: (id) => [`/v2/calls/${id}`, `/v2/calls?search=${id}`],
  },
  {
    name: 'scored scorecards',
    record: scoredCard,
    put: (store) => store.scoredCards,
    id: 'evaluationId',
    paths: (id) => [`${V1}/${id}/scorecard`, `/v2/calls/${id}/scorecard`],
  },
  {
    name: 'deal insights',
    record: dealInsights,
    put: (store) => store.dealInsights,
    id: 'evaluationId',
    paths: (id) => [`${V1}/${id}/deal-insights`],
  },
  {
    name: 'rubrics',
    record: scorecard,
    put: (store) => store.scorecards,
    id: '_id',
    paths: (id) => [`/v2/scorecards/${id}/rubric`],
  },
];

const gateway = await forFile(startTestGateway());
const key = await gateway.issueKey({ perMinute: 1_000_000, perHour: 1_000_000 });

/** Under an id of its own, which a search finds too. */
function publish({ put, id: idMember }: Form, json: string, id: string): void {
  const record = recordSchema.parse(JSON.parse(json));
  const records = put(gateway.store);
  records.clear();
  const found = 'title' in record ? { title: `${String(record['title'])} ${id}`, state: 'COMPLETED' } : {};
  records.set(id, { ...record, ...found, workspaceId: WORKSPACE_A, [idMember]: id });
}

test.each(FORMS)('$name', async (form) => {
  let made = 0;
  await fc.assert(
    fc.asyncProperty(planted(form.record), async (json) => {
      made += 1;
      const id = `made_${made}`;
      publish(form, json, id);
      for (const path of form.paths(id)) {
        // Held against the document, whose objects are closed.
        const { status, text } = await gateway.get(path, { key });
        expect([path, status]).toEqual([path, 200]);
        expect(text).not.toContain(PLANTED);
        expect(text).toMatch(path.includes('search=') ? new RegExp(`"id":"${id}"`) : /^\{/);
      }
    }),
    { numRuns: cases(20) },
  );
});

test('records do get unknown members planted, at every depth', () => {
  const texts = fc.sample(planted(evaluation), { numRuns: 200, seed: 1 });
  const places = texts.flatMap((text) => placesOf(PLANTED, JSON.parse(text)));
  expect([...new Set(places)].toSorted()).toEqual(
    expect.arrayContaining(['', 'categoryScores', 'crmLinks', 'evaluatee', 'people', 'scorecardRef', 'shareLink']),
  );
});

/** Under which top-level member (`''` for the record itself) an object has a member that holds the marker directly. */
function placesOf(marker: string, value: unknown, top = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    if (Array.isArray(member) && member[0] === marker) return [top];
    return placesOf(marker, member, top === '' ? name : top);
  });
}
