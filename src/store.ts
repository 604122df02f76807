/** The store of evaluations: the configured one, or the bundled sample if none is configured. */
import { createHash, randomBytes } from 'node:crypto';
import { gated, type MaintenanceWatch } from './cache/maintenance.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import type { ImportedKey, IssuedKey, Scope } from './keys/key.ts';
import { issueKey } from './keys/lifecycle.ts';
import type { DemoIds } from './sample/data.ts';
import type { StoreHooks } from './telemetry/hooks.ts';
import type { Timers } from './timers.ts';
import { createLocalCallRate } from './upstream/call-rate.ts';
import { StoreClient } from './upstream/client.ts';
import { Guard } from './upstream/guard.ts';

export interface Store {
  /** Fetches from the store. */
  readonly guard: Guard;
  /** Names the store among others, in letters and digits, without its address. */
  readonly identity: string;
  /** The sample that was started here; null in front of another store. */
  readonly sample: SampleStore | null;
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly upstream: Config['upstream'];
  readonly hooks: StoreHooks;
  /** The sample that the workers of a gateway share; null if there is none. */
  readonly sample: SampleAccess | null;
  /** While it is on, nothing is sent. */
  readonly maintenance: MaintenanceWatch;
  readonly clock: Clock;
  readonly timers: Timers;
}

const IDENTITY_LENGTH = 12;

/** Opens the configured store, behind the maintenance gate and the guard; if there is none, the sample. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { upstream, hooks, maintenance, clock, timers } = options;
  const { url, maxRequestsPerSecond } = upstream;
  let sample: SampleStore | null = null;
  let target = url === null ? options.sample : { url, token: upstream.token };
  if (target === null) {
    sample = await startSampleStore();
    target = sample;
  }
  const client = new StoreClient({ ...upstream, baseUrl: target.url, token: target.token, clock, hooks: hooks.store });
  // Innermost, so that a call that waited for its turn is stopped too.
  const send = gated(client.fetch, maintenance, clock);
  const guard = new Guard(send, { limits: upstream, clock, timers, hooks: hooks.guard });
  if (maxRequestsPerSecond !== null) {
    guard.limitBy(createLocalCallRate({ perSecond: () => maxRequestsPerSecond, clock, timers }));
  }
  return {
    guard,
    // The sample holds the same data wherever it runs.
    identity: url === null ? 'sample' : createHash('sha256').update(url).digest('hex').slice(0, IDENTITY_LENGTH),
    sample,
    close: async () => {
      client.close();
      await sample?.close();
    },
  };
}

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

/**
 * Starts the sample on a free loopback port, with a token that nobody else knows and one key per surface. The keys are
 * of use only if they are imported: a real store has no demo keys.
 */
export async function startSampleStore(): Promise<SampleStore> {
  // Loaded only here: most gateways have a store of their own.
  const [{ createSampleData }, { SampleUpstream }] = await Promise.all([
    import('./sample/data.ts'),
    import('./sample/server.ts'),
  ]);
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
  return {
    url,
    token,
    ids: data.demo,
    keys: [v1.key, v2.key],
    announcement: (publicUrl) => announce(v1.token, v2.token, data.demo, publicUrl),
    close: () => sample.close(),
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
