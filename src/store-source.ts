/** Where evaluations come from: the configured store, or the bundled sample where none is configured. */
import { createHash } from 'node:crypto';
import { gated, maintenanceGate } from './cache/maintenance.ts';
import type { MaintenanceWatch } from './cache/maintenance.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import type { DemoIds } from './sample/index.ts';
import type { SampleAddress } from './sample-store.ts';
import { systemTimers } from './timers.ts';
import type { StoreHooks } from './telemetry/hooks.ts';
import type { Tracing } from './tracing/tracing.ts';
import { createLocalCallRate } from './upstream/call-rate.ts';
import { StoreClient } from './upstream/client.ts';
import { Guard } from './upstream/guard.ts';

export interface StoreSource {
  /** Behind its guard. */
  readonly store: Guard;
  /** Names the store among others, in letters and digits, without telling where it is. */
  readonly identity: string;
  /** What the sample that was started here holds to be shown; null in front of another store. */
  readonly demo: DemoIds | null;
  close(): Promise<void>;
}

export interface StoreSourceOptions {
  readonly upstream: Config['upstream'];
  readonly hooks: StoreHooks;
  readonly tracing: Tracing;
  /** The sample that runs already; null where there is none. */
  readonly running: SampleAddress | null;
  /** While it is on, nothing is sent. */
  readonly maintenance: MaintenanceWatch;
  readonly clock: Clock;
}

const IDENTITY_LENGTH = 12;
/** The sample's name among stores: it is the same data wherever it runs. */
const SAMPLE_IDENTITY = 'sample';

/** Opens the store. Where none is configured that is the sample: the one that runs already, else one of its own. */
export async function openStore(options: StoreSourceOptions): Promise<StoreSource> {
  const { upstream, running } = options;
  if (upstream.url !== null) {
    const identity = createHash('sha256').update(upstream.url).digest('hex').slice(0, IDENTITY_LENGTH);
    return { ...connect({ url: upstream.url, token: upstream.token }, options), identity, demo: null };
  }
  if (running !== null) return { ...connect(running, options), identity: SAMPLE_IDENTITY, demo: null };
  // Most gateways have a store of their own, and no use for the sample's code.
  const { startSampleStore } = await import('./sample-store.ts');
  const sample = await startSampleStore();
  const connected = connect(sample, options);
  return {
    ...connected,
    identity: SAMPLE_IDENTITY,
    demo: sample.ids,
    close: async () => {
      await connected.close();
      await sample.close();
    },
  };
}

/** The client of the store at that address, and its guard around it. */
function connect(
  { url, token }: { readonly url: string; readonly token: string | null },
  { upstream, hooks: reported, tracing, maintenance, clock }: StoreSourceOptions,
): Pick<StoreSource, 'store' | 'close'> {
  const { timeoutMs, maxResponseBytes, maxConnections, maxRequestsPerSecond } = upstream;
  const limits = { timeoutMs, maxResponseBytes, maxConnections };
  const hooks = tracing.storeHooks(reported);
  const client = new StoreClient({ ...limits, baseUrl: url, token, clock, hooks: hooks.store });
  const store = new Guard(gated(tracing.store(client.fetch), maintenanceGate(maintenance, clock)), {
    limits: { ...upstream, maxInFlight: maxConnections },
    clock,
    timers: systemTimers,
    hooks: hooks.guard,
  });
  if (maxRequestsPerSecond !== null) {
    store.limitBy(createLocalCallRate({ perSecond: () => maxRequestsPerSecond, clock, timers: systemTimers }));
  }
  return { store, close: async () => client.close() };
}
