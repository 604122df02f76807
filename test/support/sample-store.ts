/** A running sample store, as `evalgate sample-upstream` runs it, for tests that speak HTTP to it. */

import { forTest } from './opened.ts';
import { createSampleData, type SampleData } from '../../src/sample/data.ts';
import type { Faults } from '../../src/sample/faults.ts';
import { SampleUpstream } from '../../src/sample/server.ts';

const TOKEN = 'a-token';

export interface SampleOptions {
  readonly data?: SampleData;
  readonly latency?: number;
  readonly faults?: Partial<Faults>;
  /** Waits in place of the sample, which is given up when the signal aborts. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

export type RunningSample = Awaited<ReturnType<typeof openSample>>;

export async function openSample({
  data = createSampleData({ seed: 1, evaluations: 40 }),
  ...options
}: SampleOptions = {}) {
  const upstream = new SampleUpstream({ data, token: TOKEN, ...options });
  const { url } = await upstream.listen(0);
  return {
    data,
    url,
    setFaults: (faults: Partial<Faults>): void => upstream.setFaults(faults),
    close: (): Promise<void> => upstream.close(),
    /** A GET below `/internal/v1`. Redirects are not followed. */
    read: (path: string, init: RequestInit = {}): Promise<Response> => {
      const headers = { authorization: `Bearer ${TOKEN}` };
      return fetch(`${url}/internal/v1${path}`, { redirect: 'manual', headers, ...init });
    },
  };
}

/** Closed when the test is over. */
export async function startSample(options: SampleOptions = {}): Promise<RunningSample> {
  const sample = await forTest(openSample(options));
  return sample;
}
