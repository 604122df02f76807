/** The examples of docs/store-interface.md and the printed JSON Schema say the same as the code that reads the store. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createSampleData } from '../../src/sample/data.ts';
import { runCli, runJson } from '../support/cli.ts';
import { createStoreServer } from '../support/store-server.ts';

const DOCUMENT = readFileSync(join(import.meta.dirname, '../../docs/store-interface.md'), 'utf8');

/** The JSON below each heading of the examples. */
function examples(): ReadonlyMap<string, unknown> {
  const found = DOCUMENT.matchAll(/^### (\w+)\n(?:(?!^#).*\n)*?```json\n([^]*?)^```/gm);
  return new Map([...found].map(([, name = '', json = '']) => [name, JSON.parse(json)]));
}

const schemaSchema = z.object({ $defs: z.record(z.string(), z.looseObject({})) });

async function validator() {
  const document = schemaSchema.parse(await runJson(['openapi', '--store']));
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  return {
    names: Object.keys(document.$defs),
    faultsOf: (name: string, value: unknown) => {
      const check = ajv.compile({ $ref: `#/$defs/${name}`, $defs: document.$defs });
      return check(value) ? [] : check.errors;
    },
  };
}

test('each body has an example, which is valid by the schema', async () => {
  const { names, faultsOf } = await validator();
  const found = examples();
  // An evaluation is shown in the list.
  expect(names.filter((name) => !found.has(name))).toEqual(['Evaluation']);
  for (const [name, example] of found) expect([name, faultsOf(name, example)]).toEqual([name, []]);
});

test('each record of the sample store is valid or malformed by the schema as the code says', async () => {
  const { faultsOf } = await validator();
  const { records, evaluations } = createSampleData({ seed: 3, evaluations: 200 });
  for (const { _id } of evaluations.slice(0, 20)) {
    expect(faultsOf('Evaluation', records.evaluations.get(_id))).toEqual([]);
    expect(faultsOf('Transcript', records.transcripts.get(_id) ?? examples().get('Transcript'))).toEqual([]);
    expect(faultsOf('ScoredCard', records.scoredCards.get(_id) ?? examples().get('ScoredCard'))).toEqual([]);
  }
  expect(faultsOf('Transcript', { ...Object(examples().get('Transcript')), format: 'docx' })).not.toEqual([]);
  expect(faultsOf('Scorecard', { ...Object(examples().get('Scorecard')), rubric: [] })).not.toEqual([]);
});

test('a store that has the examples passes the doctor', async () => {
  const store = await createStoreServer();
  const listSchema = z.object({ items: z.tuple([z.looseObject({ _id: z.string(), workspaceId: z.string() })]) });
  const found = examples();
  const [evaluation] = listSchema.parse(found.get('List')).items;
  const { _id, workspaceId } = evaluation;
  store.evaluations.set(_id, evaluation);
  store.transcripts.set(_id, found.get('Transcript'));
  store.scoredCards.set(_id, found.get('ScoredCard'));
  store.dealInsights.set(_id, found.get('DealInsights'));
  const { _id: scorecardId } = z.object({ _id: z.string() }).parse(found.get('Scorecard'));
  store.scorecards.set(scorecardId, found.get('Scorecard'));
  const env = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token };
  const args = ['doctor', '--workspace', workspaceId, '--admin', 'http://127.0.0.1:1'];
  const { status, stdout } = await runCli(args, { env });
  await store.close();
  expect([status, stdout.match(/^(?:warn|fail)/gm)]).toEqual([0, null]);
});
