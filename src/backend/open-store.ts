/** The store of evaluations: the configured one, or the bundled sample if none is configured. */
import { createHash } from 'node:crypto';
import { gated, type MaintenanceWatch } from '../upstream/maintenance.ts';
import type { Clock } from '../time/clock.ts';
import type { Config } from '../config/config.ts';
import type { SampleAccess, SampleStore } from './demo-store.ts';
import type { StoreHooks } from '../telemetry/hooks.ts';
import type { Timers } from '../time/timers.ts';
import type { AnswerMemory } from '../upstream/answer-memory.ts';
import { createLocalCallRate } from '../upstream/call-rate.ts';
import { StoreClient } from '../upstream/client.ts';
import { Guard } from '../upstream/guard.ts';
import { lookForStore } from '../upstream/reachability.ts';

export interface Store {
  readonly guard: Guard;
  /** Names the store among others, in letters and digits, without its address. */
  readonly identity: string;
  /** The sample that was started here; null if the store is another. */
  readonly sample: SampleStore | null;
  /** Sends that token from the next call on. The sample keeps its own. */
  useToken(token: string | null): void;
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly upstream: Config['upstream'];
  /** Bounds the answers under way. */
  readonly memory: AnswerMemory;
  readonly hooks: StoreHooks;
  /** The sample that the workers of a gateway share; null if there is none. */
  readonly sample: SampleAccess | null;
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

/** Opens the configured store, behind the maintenance gate and the guard; if there is none, the sample. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { upstream, memory, hooks, maintenance, refreshToken, clock, timers } = options;
  const { url, maxRequestsPerSecond } = upstream;
  let sample: SampleStore | null = null;
  let target = url === null ? options.sample : { url, token: upstream.token };
  if (target === null) {
    // Loaded only here: most gateways have a store of their own.
    const { startSampleStore } = await import('./demo-store.ts');
    sample = await startSampleStore();
    target = sample;
  }
  const { url: baseUrl, token } = target;
  const client = new StoreClient({ ...upstream, baseUrl, token, memory, clock, refreshToken, hooks: hooks.store });
  // Innermost, so that a call that waited for its turn is stopped too.
  const send = gated(client.fetch, maintenance, clock);
  const guard = new Guard(send, { limits: upstream, clock, timers, hooks: hooks.guard });
  hooks.watch(() => guard.status());
  if (maxRequestsPerSecond !== null) {
    guard.limitBy(createLocalCallRate({ perSecond: () => maxRequestsPerSecond, clock, timers }));
  }
  const isLookedFor = options.isLookedFor && url !== null;
  const endLook = isLookedFor ? lookForStore({ url, timers, onTried: hooks.onConnect }) : null;
  return {
    guard,
    // The sample holds the same data wherever it runs.
    identity: url === null ? 'sample' : createHash('sha256').update(url).digest('hex').slice(0, IDENTITY_LENGTH),
    sample,
    useToken: (newest) => {
      if (url !== null) client.useToken(newest);
    },
    close: async () => {
      endLook?.();
      client.close();
      await sample?.close();
    },
  };
}
