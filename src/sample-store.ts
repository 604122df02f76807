/** The bundled sample store as the gateway runs it where no other is configured. */
import { randomBytes } from 'node:crypto';
import { createSampleData, SampleUpstream, type DemoIds } from './sample/index.ts';

/** Where the sample is and what it asks for. */
export interface SampleAddress {
  readonly url: string;
  readonly token: string;
}

export interface SampleStore extends SampleAddress {
  /** What it holds to be shown. */
  readonly ids: DemoIds;
  close(): Promise<void>;
}

const SAMPLE_EVALUATIONS = 5000;
const SAMPLE_SEED = 1;
/** The sample is as slow as the stores that the gateway is for. */
const SAMPLE_MEDIAN_LATENCY_MS = 120;

/** A real HTTP server on a free loopback port, with a token that nobody else knows. */
export async function startSampleStore(): Promise<SampleStore> {
  const data = createSampleData({ seed: SAMPLE_SEED, evaluations: SAMPLE_EVALUATIONS });
  const token = randomBytes(24).toString('base64url');
  const sample = new SampleUpstream({ data, token, latency: SAMPLE_MEDIAN_LATENCY_MS });
  const { url } = await sample.listen(0);
  return { url, token, ids: data.demo, close: () => sample.close() };
}
