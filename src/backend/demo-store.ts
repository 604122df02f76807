/** The bundled sample as a demo: the store that a gateway without another one starts, and the keys to it. */
import { randomBytes } from 'node:crypto';
import type { Scope } from '../domain/vocabulary.ts';
import type { ImportedKey, IssuedKey } from '../keys/key.ts';
import { issueKey } from '../keys/lifecycle.ts';
import { createSampleData, type DemoIds } from '../sample/data.ts';
import { type SampleEdit, SampleEdits } from '../sample/edits.ts';
import { SampleUpstream } from '../sample/server.ts';

/** How a process reaches the sample, and the keys to it. */
export interface SampleAccess {
  readonly url: string;
  readonly token: string;
  readonly keys: readonly ImportedKey[];
}

export interface SampleStore extends SampleAccess {
  /** The records that the announcement shows. */
  readonly ids: DemoIds;
  /** For newcomers. */
  announcement(publicUrl: string): DemoAnnouncement;
  /** Changes a record every second from now on, until it is closed. */
  change(onEdit: (edit: SampleEdit) => void): void;
  close(): Promise<void>;
}

export interface DemoAnnouncement {
  readonly v1Key: string;
  readonly v2Key: string;
  /** One per endpoint, ready for a shell. */
  readonly curlLines: readonly string[];
}

const SAMPLE_EVALUATIONS = 5000;
const SAMPLE_SEED = 1;
/** The sample is as slow as the stores that the gateway is for. */
const SAMPLE_MEDIAN_LATENCY_MS = 120;
const SAMPLE_RATES = { editsPerSecond: 1, deletionsPerSecond: 0 };

/**
 * Starts the sample on a free loopback port, with a token that nobody else knows and one key per surface. The keys are
 * of use only if they are imported: a real store has no demo keys.
 */
export async function startSampleStore(): Promise<SampleStore> {
  const data = createSampleData({ seed: SAMPLE_SEED, evaluations: SAMPLE_EVALUATIONS });
  const token = randomBytes(24).toString('base64url');
  const sample = new SampleUpstream({ data, token, latency: SAMPLE_MEDIAN_LATENCY_MS });
  const { url } = await sample.listen(0);
  const issue = (name: string, scopes: readonly Scope[]): IssuedKey => {
    const limits = { perMinute: null, perHour: null };
    const { workspaceId } = data.demo;
    return issueKey({ name, workspaceIds: [workspaceId], scopes, expiresAtMs: null, limits }, Date.now());
  };
  const v1 = issue('Demo key for v1', ['reports.read']);
  const v2 = issue('Demo key for v2', ['calls.read', 'coaching.read']);
  let stopChanging: (() => void) | null = null;
  return {
    url,
    token,
    ids: data.demo,
    keys: [v1.key, v2.key],
    announcement: (publicUrl) => announce(v1.token, v2.token, data.demo, publicUrl),
    change: (onEdit) => {
      stopChanging = new SampleEdits(data.records, SAMPLE_SEED).begin(SAMPLE_RATES, onEdit);
    },
    close: () => {
      stopChanging?.();
      return sample.close();
    },
  };
}

function announce(v1Key: string, v2Key: string, ids: DemoIds, publicUrl: string): DemoAnnouncement {
  const reports = `/v1/workspaces/${ids.workspaceId}/reports`;
  const v1Paths = [
    '?limit=2',
    ...['', '/scorecard', '/deal-insights', '/transcript'].map((part) => `/${ids.reportId}${part}`),
  ];
  const v2Paths = [
    '/calls?pageSize=2',
    ...['', '/transcript?pageSize=5', '/scorecard'].map((part) => `/calls/${ids.callId}${part}`),
    `/scorecards/${ids.scorecardId}/rubric`,
  ];
  const curl = (key: string, path: string): string => `curl -H 'Authorization: Bearer ${key}' '${publicUrl}${path}'`;
  const curlLines = [
    ...v1Paths.map((path) => curl(v1Key, reports + path)),
    ...v2Paths.map((path) => curl(v2Key, `/v2${path}`)),
  ];
  return { v1Key, v2Key, curlLines };
}
