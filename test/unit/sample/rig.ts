/** A running sample upstream for tests. */
import type { OutgoingHttpHeaders } from 'node:http';
import { onTestFinished } from 'vitest';
import { createSampleData, createSampleUpstream, demo } from '../../../src/sample/index.ts';
import type { DemoIds, SampleData, SampleUpstream, SampleUpstreamOptions } from '../../../src/sample/index.ts';
import { get, open } from '../../contract/upstream-interface/http-get.ts';

const TOKEN = 'a-token';

export interface Rig {
  readonly data: SampleData;
  readonly ids: DemoIds;
  readonly upstream: SampleUpstream;
  readonly url: string;
  readonly read: (path: string, headers?: OutgoingHttpHeaders) => ReturnType<typeof get>;
  readonly open: (path: string, headers?: OutgoingHttpHeaders) => ReturnType<typeof open>;
}

/** Starts one for the test that is running, and stops it after. Paths are below `/internal/v1`. */
export async function startSample(options: Partial<SampleUpstreamOptions> = {}): Promise<Rig> {
  const data = options.data ?? createSampleData({ seed: 1, evaluations: 40 });
  const upstream = createSampleUpstream({ token: TOKEN, ...options, data });
  const { url } = await upstream.listen(0);
  onTestFinished(() => upstream.close());
  const auth = { authorization: `Bearer ${TOKEN}` };
  return {
    data,
    ids: demo(data),
    upstream,
    url,
    read: (path, headers = {}) => get(`${url}/internal/v1${path}`, { ...auth, ...headers }),
    open: (path, headers = {}) => open(`${url}/internal/v1${path}`, { ...auth, ...headers }),
  };
}
