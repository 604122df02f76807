/** For newcomers: the bundled sample store, keys to it, and a line to paste for each endpoint. */
import { randomBytes } from 'node:crypto';
import type { IssuedKey, Scope } from './keys/key.ts';
import type { KeyDirectory } from './keys/registry.ts';
import { createSampleData, type DemoIds, SampleUpstream } from './sample/index.ts';

/** How to reach a store. */
export interface StoreAddress {
  readonly url: string;
  readonly token: string;
}

export interface SampleStore extends StoreAddress {
  /** The records that the announcement shows. */
  readonly ids: DemoIds;
  close(): Promise<void>;
}

export interface DemoAnnouncement {
  readonly v1Key: string;
  readonly v2Key: string;
  /** One per endpoint, ready for a shell. */
  readonly curlLines: readonly string[];
}

/** One per surface. */
export interface DemoKeys {
  readonly v1: IssuedKey;
  readonly v2: IssuedKey;
}

const SAMPLE_EVALUATIONS = 5000;
const SAMPLE_SEED = 1;
/** The sample is as slow as the stores that the gateway is for. */
const SAMPLE_MEDIAN_LATENCY_MS = 120;

/** Starts an HTTP server on a free loopback port, with a token that nobody else knows. */
export async function startSampleStore(): Promise<SampleStore> {
  const data = createSampleData({ seed: SAMPLE_SEED, evaluations: SAMPLE_EVALUATIONS });
  const token = randomBytes(24).toString('base64url');
  const sample = new SampleUpstream({ data, token, latency: SAMPLE_MEDIAN_LATENCY_MS });
  const { url } = await sample.listen(0);
  return { url, token, ids: data.demo, close: () => sample.close() };
}

/** Issues one key per surface. Only for the bundled sample: a real store has no demo keys. */
export async function issueDemoKeys(registry: KeyDirectory, ids: DemoIds): Promise<DemoKeys> {
  return {
    v1: await issue(registry, ids, 'Demo key for v1', ['reports.read']),
    v2: await issue(registry, ids, 'Demo key for v2', ['calls.read', 'coaching.read']),
  };
}

/** The lines that `evalgate serve` prints about the sample. */
export function announceDemo(keys: DemoKeys, ids: DemoIds, publicUrl: string): DemoAnnouncement {
  const v1Key = keys.v1.token;
  const v2Key = keys.v2.token;
  const report = `/v1/workspaces/${ids.workspaceId}/reports/${ids.reportId}`;
  const call = `/v2/calls/${ids.callId}`;
  const v1Paths = [
    `/v1/workspaces/${ids.workspaceId}/reports?limit=2`,
    report,
    `${report}/scorecard`,
    `${report}/deal-insights`,
    `${report}/transcript`,
  ];
  const v2Paths = [
    '/v2/calls?pageSize=2',
    call,
    `${call}/transcript?pageSize=5`,
    `${call}/scorecard`,
    `/v2/scorecards/${ids.scorecardId}/rubric`,
  ];
  const curl = (key: string, path: string): string => `curl -H 'Authorization: Bearer ${key}' '${publicUrl}${path}'`;
  const curlLines = [...v1Paths.map((path) => curl(v1Key, path)), ...v2Paths.map((path) => curl(v2Key, path))];
  return { v1Key, v2Key, curlLines };
}

function issue(registry: KeyDirectory, ids: DemoIds, name: string, scopes: readonly Scope[]): Promise<IssuedKey> {
  return registry.create({
    name,
    workspaceIds: [ids.workspaceId],
    scopes,
    expiresAtMs: null,
    limits: { perMinute: null, perHour: null },
  });
}
