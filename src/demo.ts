/** What a newcomer is shown: keys for the bundled sample, and a line to paste for each endpoint. */
import type { IssuedKey, KeyDirectory, Scope } from './keys/key.ts';
import type { DemoIds } from './sample/index.ts';

export interface DemoAnnouncement {
  readonly v1Key: string;
  readonly v2Key: string;
  /** One an endpoint, ready for a shell. */
  readonly curlLines: readonly string[];
}

/** One a surface. */
export interface DemoKeys {
  readonly v1: IssuedKey;
  readonly v2: IssuedKey;
}

/** Issues one key a surface. Only ever in front of the bundled sample: a real store has no demo keys. */
export async function issueDemoKeys(registry: KeyDirectory, ids: DemoIds): Promise<DemoKeys> {
  return {
    v1: await issue(registry, ids, 'Demo key for v1', ['reports.read']),
    v2: await issue(registry, ids, 'Demo key for v2', ['calls.read', 'coaching.read']),
  };
}

/** What is printed of them. */
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
