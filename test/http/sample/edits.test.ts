/** The sample's changes: what the store answers afterwards. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createSampleData } from '../../../src/sample/data.ts';
import { SampleEdits } from '../../../src/sample/edits.ts';
import { openSample } from '../../support/sample-store.ts';
import { forTest } from '../../support/opened.ts';

const tagOf = async (response: Promise<Response>): Promise<string> => {
  const { status, headers } = await response;
  return status === 200 ? (headers.get('etag') ?? '') : String(status);
};
const PARTS = ['', '/transcript', '/scorecard', '/deal-insights'];
const KIND_OF = { '': 'evaluation', '/transcript': 'transcript', '/scorecard': 'scorecard' };

test('an edit changes what it names, and nothing else', async () => {
  const data = createSampleData({ seed: 1, evaluations: 40 });
  const sample = await forTest(openSample({ data }));
  const ids = data.evaluations.map(({ _id }) => _id);
  const tags = async () =>
    new Map(
      await Promise.all(
        ids.flatMap((id) =>
          PARTS.map(async (part) => [`${id}${part}`, await tagOf(sample.read(`/evaluations/${id}${part}`))] as const),
        ),
      ),
    );
  const edits = new SampleEdits(data.records, 7);
  const kinds = new Set<string>();
  for (let before = await tags(), round = 0; round < 12; round += 1) {
    const made = edits.edit();
    const after = await tags();
    const changed = [...after].filter(([name, tag]) => tag !== before.get(name)).map(([name]) => name);
    const [kind = ''] = made?.kinds ?? [];
    const [part = ''] = Object.entries(KIND_OF).find(([, of]) => of === kind) ?? [];
    expect(changed).toEqual([`${made?.evaluation}${part}`]);
    kinds.add(kind);
    before = after;
  }
  expect([...kinds].toSorted()).toEqual(['evaluation', 'scorecard', 'transcript']);
});

test('a deletion leaves nothing of a call', async () => {
  const data = createSampleData({ seed: 1, evaluations: 40 });
  const sample = await forTest(openSample({ data }));
  const made = new SampleEdits(data.records, 7).delete();
  expect(made).toMatchObject({ deleted: true, workspace: expect.any(String) as unknown });
  const answers = PARTS.map(async (part) => {
    const response = await sample.read(`/evaluations/${made?.evaluation}${part}`);
    return [response.status, z.object({ code: z.string() }).parse(await response.json()).code];
  });
  expect(await Promise.all(answers)).toEqual(PARTS.map(() => [404, 'NOT_FOUND']));
});
