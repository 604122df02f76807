/** A client that a public generator makes from the document of a running gateway, and a program that uses it. */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { startTestGateway } from '../support/gateway.ts';
import { anEvaluation, aScorecard, aScoredCard, aTranscript, dealInsights, WORKSPACE_A } from '../support/records.ts';

const ROOT = join(import.meta.dirname, '../..');
const PROGRAM = join(import.meta.dirname, 'client');

const gateway = await forFile(startTestGateway());
gateway.store.put({
  evaluations: [anEvaluation()],
  transcripts: [aTranscript()],
  scoredCards: [aScoredCard()],
  dealInsights: [dealInsights()],
  scorecards: [aScorecard()],
});

/** A folder with the document, the program and what both need to be compiled. */
async function prepare(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-client-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const { text } = await gateway.get('/openapi.json', { isUndocumented: true });
  await writeFile(join(folder, 'openapi.json'), text);
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  const tsconfig = {
    extends: join(ROOT, 'tsconfig.json'),
    // The generator's runtime names the types of fetch as a browser has them.
    compilerOptions: { lib: ['es2024', 'dom'], skipLibCheck: true },
    include: ['*.ts'],
    exclude: [],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
  for (const file of await readdir(PROGRAM)) await copyFile(join(PROGRAM, file), join(folder, file));
  return folder;
}

/** Rejects with the output of a program that fails. */
async function node(cwd: string, ...args: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)(process.execPath, args, { cwd })).stdout;
  } catch (error) {
    const output = ['stdout', 'stderr'].map((stream) => String(Reflect.get(Object(error), stream)));
    throw new Error(output.join('\n'), { cause: error });
  }
}

test('calls every operation, typed without casts', async () => {
  const { token: v1Key, keyId } = await gateway.issue({ scopes: ['reports.read'] });
  const v2Key = await gateway.issueKey({ scopes: ['calls.read', 'coaching.read'], perMinute: 30 });
  const folder = await prepare();
  await node(folder, join(ROOT, 'node_modules/.bin/oazapfts'), 'openapi.json', 'client.ts');
  await node(folder, join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json');
  const ids = [WORKSPACE_A, 'ev_1', 'ev_1', 'sc_1'];
  const readings = await node(folder, 'main.ts', gateway.publicUrl, v1Key, v2Key, ...ids);
  const document = await readFile(join(folder, 'openapi.json'), 'utf8');
  const operations = [...document.matchAll(/"operationId": ?"(\w+)"/g)].map(([, operation = '']) => operation);
  expect(JSON.parse(readings)).toEqual(Object.fromEntries(operations.map((one) => [one, expect.anything()])));
  expect(JSON.parse(readings)).toEqual({
    listReports: { names: ['Discovery call with Northwind'], page: 1, total: 1 },
    getReport: { email: 'riley.ortega@example.com', deals: ['Northwind renewal'], sharedSince: null, minutes: 30.57 },
    getReportScorecard: { scores: ['4', 'n/a'], tryThis: 'Ask what happens if nothing changes.' },
    getReportDealInsights: {
      evaluation: 'ev_1',
      link: 'https://app.example.com/evaluations/ev_1',
      topics: ['risk', 'blockers'],
    },
    getReportTranscript: { length: 78, isSupported: true },
    getWorkspaceKey: { id: keyId },
    listCalls: { names: ['Discovery call with Northwind'], pages: 1, total: 1 },
    getCall: {
      evaluatee: 'user_rep',
      objects: ['deal Northwind renewal https://crm.example.com/deal_1', 'account Northwind -'],
      best: 80,
    },
    getCallTranscript: { turns: [0, 1], hasMore: false, isTruncated: false },
    getCallScorecard: { sections: ['Opening'], strengths: ['Rapport'] },
    getScorecardRubric: { name: 'Discovery scorecard', keys: ['sections'] },
    getCallsKey: { perMinute: 30 },
  });
}, 60_000);

test('the program has no casts, no assertions and nothing untyped', async () => {
  for (const name of await readdir(PROGRAM)) {
    const code = (await readFile(join(PROGRAM, name), 'utf8')).replaceAll(/\/\*[\s\S]*?\*\//g, '');
    expect(code.match(/\bas (?!api\b)|\bany\b|@ts-|[\w)\]]!(?!=)|<\w+>\w/g)).toBeNull();
  }
});
