/** The store of evaluations: the configured one, or the bundled sample if none is configured. */
import { createHash } from 'node:crypto';
import { gated, type MaintenanceWatch } from '../upstream/maintenance.ts';
import type { Clock } from '../time/clock.ts';
import type { Config } from '../config/config.ts';
import type { SampleAccess, SampleStore } from './demo-store.ts';
import type { RedisLink } from '../redis/connection.ts';
import { callRateKey } from '../redis/names.ts';
import type { StoreHooks } from '../telemetry/hooks.ts';
import type { Timers } from '../time/timers.ts';
import { AnswerMemory, defaultAnswerBytes } from '../upstream/answer-memory.ts';
import { createCallRate } from '../upstream/call-rate.ts';
import { StoreClient } from '../upstream/client.ts';
import { Guard } from '../upstream/guard.ts';
import { lookForStore } from '../upstream/reachability.ts';

export interface Store {
  readonly guard: Guard;
  /** Bounds the answers under way. */
  readonly answerMemory: AnswerMemory;
  /** Sends that token from the next call on. The sample keeps its own. */
  useToken(token: string | null): void;
  close(): void;
}

/** The configured store, or the sample. */
export interface StoreTarget {
  readonly url: string;
  readonly token: string | null;
  /** Whether the token may be exchanged while the gateway runs, and the address be wrong. */
  readonly isConfigured: boolean;
  /** The sample that was started here; null if the store is another. */
  readonly sample: SampleStore | null;
}

export interface StoreContext {
  readonly upstream: Config['upstream'];
  readonly target: StoreTarget;
  /** The processes that share a limit of calls a second; null for a gateway without Redis. */
  readonly shared: { readonly link: RedisLink; readonly processes: () => number } | null;
  readonly hooks: StoreHooks;
  /** While it is on, nothing is sent. */
  readonly maintenance: MaintenanceWatch;
  /** Called when the store refuses the token: resolves once the newest one is in use. */
  readonly refreshToken: () => Promise<void>;
  /** Whether it is connected to at once, so that a wrong address shows before the first call. */
  readonly isLookedFor: boolean;
  readonly clock: Clock;
  readonly timers: Timers;
}

const IDENTITY_LENGTH = 12;

/** Names the store among others, in letters and digits, without its address. The sample holds the same data wherever it runs. */
export function identityOf({ url }: Pick<Config['upstream'], 'url'>): string {
  return url === null ? 'sample' : createHash('sha256').update(url).digest('hex').slice(0, IDENTITY_LENGTH);
}

/** `shared`: the sample that the workers of a gateway share. If no store is configured and there is none, one is started. */
export async function findStore(
  { url, token }: Pick<Config['upstream'], 'url' | 'token'>,
  shared: SampleAccess | null,
): Promise<StoreTarget> {
  if (url !== null) return { url, token, isConfigured: true, sample: null };
  if (shared !== null) return { url: shared.url, token: shared.token, isConfigured: false, sample: null };
  // Loaded only here: most gateways have a store of their own.
  const { startSampleStore } = await import('./demo-store.ts');
  const sample = await startSampleStore();
  return { url: sample.url, token: sample.token, isConfigured: false, sample };
}

/** Opens the way to the store, behind the maintenance gate and the guard. */
export function openStore(context: StoreContext): Store {
  const { upstream, target, shared, hooks, maintenance, refreshToken, clock, timers } = context;
  const { url, token, isConfigured } = target;
  const answerMemory = new AnswerMemory(upstream.answerMemoryBytes ?? defaultAnswerBytes(), { clock, timers });
  const ofClient = { baseUrl: url, token, memory: answerMemory, clock, refreshToken, hooks: hooks.store };
  const client = new StoreClient({ ...upstream, ...ofClient });
  // Innermost, so that a call that waited for its turn is stopped too.
  const send = gated(client.fetch, maintenance, clock);
  const guard = new Guard(send, { limits: upstream, clock, timers, hooks: hooks.guard });
  hooks.watch(() => guard.status());
  const { maxRequestsPerSecond: perSecond } = upstream;
  if (perSecond !== null) {
    const ofAll = shared && { ...shared, key: callRateKey(identityOf(upstream)) };
    guard.limitBy(createCallRate({ perSecond, shared: ofAll, clock, timers }));
  }
  const isLookedFor = context.isLookedFor && isConfigured;
  const endLook = isLookedFor ? lookForStore({ url, timers, onTried: hooks.onConnect }) : null;
  return {
    guard,
    answerMemory,
    useToken: (newest) => {
      if (isConfigured) client.useToken(newest);
    },
    close: () => {
      endLook?.();
      client.close();
    },
  };
}
