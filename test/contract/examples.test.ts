/** The examples of the documents work when they are pasted against `npm start`: their ids are those of the bundled sample. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { startSampleStore } from '../../src/backend/demo-store.ts';

const ROOT = join(import.meta.dirname, '../..');
const DOCUMENTS = globSync(
  ['README.md', 'docs/**/*.md', 'docs/examples/*', 'deploy/**/*.md', 'src/http/openapi/examples.ts'],
  { cwd: ROOT },
);
const UUID = /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/gi;
const EVALUATION_ID = /\bev_\w+/g;

const sample = await forFile(startSampleStore());

/** Each id with the documents that name it. */
function idsOf(pattern: RegExp): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const document of DOCUMENTS) {
    for (const [id] of readFileSync(join(ROOT, document), 'utf8').matchAll(pattern)) {
      found.set(id, [...(found.get(id) ?? []), document]);
    }
  }
  return found;
}

test('each workspace or scorecard of an example is the one that the demo keys may see', () => {
  const { workspaceId, scorecardId } = sample.ids;
  const named = idsOf(UUID);
  expect([...(named.get(workspaceId) ?? [])]).toEqual(expect.arrayContaining(['docs/operating.md']));
  for (const known of [workspaceId, scorecardId]) named.delete(known);
  expect([...named]).toEqual([]);
});

test('each evaluation of an example exists in that workspace', async () => {
  const named = idsOf(EVALUATION_ID);
  expect([...named.values()].flat()).toContain('docs/operating.md');
  for (const [id, documents] of named) {
    const response = await fetch(`${sample.url}/internal/v1/evaluations/${id}`, {
      headers: { authorization: `Bearer ${sample.token}` },
    });
    expect([id, documents, response.status]).toEqual([id, documents, 200]);
    expect(await response.json()).toMatchObject({ _id: id, workspaceId: sample.ids.workspaceId });
  }
});
