/** The store of evaluations: the configured one, or the bundled sample if none is configured. */
import { createHash } from 'node:crypto';
import { gated, maintenanceGate } from './cache/maintenance.ts';
import type { MaintenanceWatch } from './cache/maintenance.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import type { DemoAnnouncement, StoreAddress } from './demo.ts';
import type { KeyDirectory } from './keys/registry.ts';
import type { StoreHooks } from './telemetry/hooks.ts';
import { systemTimers } from './timers.ts';
import type { Tracing } from './tracing/tracing.ts';
import { createLocalCallRate } from './upstream/call-rate.ts';
import { StoreClient } from './upstream/client.ts';
import { Guard } from './upstream/guard.ts';

export interface Store {
  /** Fetches from the store. */
  readonly guard: Guard;
  /** Names the store among others, in letters and digits, without its address. */
  readonly identity: string;
  /** Issues keys to the sample that was started here; null in front of another store. */
  readonly demo: ((keys: KeyDirectory, publicUrl: string) => Promise<DemoAnnouncement>) | null;
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly upstream: Config['upstream'];
  readonly hooks: StoreHooks;
  readonly tracing: Tracing;
  /** The sample that the workers of a gateway share; null if there is none. */
  readonly sample: StoreAddress | null;
  /** While it is on, nothing is sent. */
  readonly maintenance: MaintenanceWatch;
  readonly clock: Clock;
}

const IDENTITY_LENGTH = 12;
/** The sample holds the same data wherever it runs. */
const SAMPLE_IDENTITY = 'sample';

/** Opens the configured store; if there is none, the sample of the workers, else one of its own. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { upstream, sample } = options;
  if (upstream.url !== null) {
    const identity = createHash('sha256').update(upstream.url).digest('hex').slice(0, IDENTITY_LENGTH);
    return connect({ url: upstream.url, token: upstream.token }, identity, options);
  }
  if (sample !== null) return connect(sample, SAMPLE_IDENTITY, options);
  // Loaded only here: most gateways have a store of their own.
  const { announceDemo, issueDemoKeys, startSampleStore } = await import('./demo.ts');
  const own = await startSampleStore();
  const store = connect(own, SAMPLE_IDENTITY, options);
  return {
    ...store,
    demo: async (keys, publicUrl) => announceDemo(await issueDemoKeys(keys, own.ids), own.ids, publicUrl),
    close: async () => {
      await store.close();
      await own.close();
    },
  };
}

/** The client of the store at that address, behind the maintenance gate and the guard. */
function connect(
  { url, token }: { readonly url: string; readonly token: string | null },
  identity: string,
  { upstream, hooks: reported, tracing, maintenance, clock }: StoreOptions,
): Store {
  const { timeoutMs, maxResponseBytes, maxConnections, maxRequestsPerSecond } = upstream;
  const limits = { timeoutMs, maxResponseBytes, maxConnections };
  const hooks = tracing.storeHooks(reported);
  const client = new StoreClient({ ...limits, baseUrl: url, token, clock, hooks: hooks.store });
  const guard = new Guard(gated(tracing.store(client.fetch), maintenanceGate(maintenance, clock)), {
    limits: { ...upstream, maxInFlight: maxConnections },
    clock,
    timers: systemTimers,
    hooks: hooks.guard,
  });
  if (maxRequestsPerSecond !== null) {
    guard.limitBy(createLocalCallRate({ perSecond: () => maxRequestsPerSecond, clock, timers: systemTimers }));
  }
  return { guard, identity, demo: null, close: async () => client.close() };
}
