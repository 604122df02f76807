/** Where evaluations come from: the configured store, or the bundled sample where none is configured. */
import { createHash, randomBytes } from 'node:crypto';
import type { Config } from './config/config.ts';
import { createSampleData, createSampleUpstream, demo, type DemoIds } from './sample/index.ts';
import { createHttpStore, type HttpStore, type HttpStoreHooks } from './upstream/http-store.ts';

export interface StoreSource {
  readonly store: HttpStore;
  /** Names the store among others, in letters and digits, without telling where it is. */
  readonly identity: string;
  /** What the sample holds to be shown; null in front of a real store. */
  readonly demo: DemoIds | null;
  close(): Promise<void>;
}

const IDENTITY_LENGTH = 12;
const SAMPLE_EVALUATIONS = 5000;
const SAMPLE_SEED = 1;
/** The sample is as slow as the stores that the gateway is for. */
const SAMPLE_MEDIAN_LATENCY_MS = 120;

/** Opens the store. The sample is a real HTTP server on a free loopback port, with a token that nobody else knows. */
export async function openStore(upstream: Config['upstream'], hooks: HttpStoreHooks): Promise<StoreSource> {
  const { timeoutMs, maxResponseBytes, maxConnections } = upstream;
  const limits = { timeoutMs, maxResponseBytes, maxConnections, hooks };
  if (upstream.url !== null) {
    const store = createHttpStore({ ...limits, baseUrl: upstream.url, token: upstream.token });
    const identity = createHash('sha256').update(upstream.url).digest('hex').slice(0, IDENTITY_LENGTH);
    return { store, identity, demo: null, close: () => store.close() };
  }
  const data = createSampleData({ seed: SAMPLE_SEED, evaluations: SAMPLE_EVALUATIONS });
  const token = randomBytes(24).toString('base64url');
  const sample = createSampleUpstream({ data, token, latency: SAMPLE_MEDIAN_LATENCY_MS });
  const { url } = await sample.listen(0);
  const store = createHttpStore({ ...limits, baseUrl: url, token });
  return {
    store,
    identity: 'sample',
    demo: demo(data),
    close: async () => {
      await store.close();
      await sample.close();
    },
  };
}
