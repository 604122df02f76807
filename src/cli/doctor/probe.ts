/** Reads from the store as the gateway does, and keeps what the doctor wants to know of the answer. */
import { randomUUID } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { reasonOf } from '../admin-client.ts';

export interface ProbeAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body; undefined where it is no JSON. */
  readonly content: unknown;
  /** When the request was sent and when its headers had come, Unix milliseconds. */
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

/** The store gave no answer; the message says why, in a few words. */
export class ProbeError extends Error {
  override readonly name = 'ProbeError';
}

export interface ReachableStore extends Pick<Config['upstream'], 'timeoutMs' | 'maxResponseBytes'> {
  readonly url: string;
  readonly token: string | null;
}

/** GETs a path of the store. Throws ProbeError where there is no whole answer. */
export async function probe(
  store: ReachableStore,
  path: string,
  headers: Record<string, string> = {},
): Promise<ProbeAnswer> {
  const sentAtMs = Date.now();
  try {
    const response = await fetch(store.url + path, {
      headers: {
        ...(store.token === null ? {} : { authorization: `Bearer ${store.token}` }),
        'x-request-id': randomUUID(),
        accept: 'application/json',
        ...headers,
      },
      redirect: 'manual',
      signal: AbortSignal.timeout(store.timeoutMs),
    });
    const answeredAtMs = Date.now();
    const text = await readText(response, store.maxResponseBytes);
    return { status: response.status, headers: response.headers, content: parseJson(text), sentAtMs, answeredAtMs };
  } catch (error) {
    throw error instanceof ProbeError ? error : new ProbeError(reasonOf(error));
  }
}

async function readText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const body: AsyncIterable<Uint8Array> | null = response.body;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new ProbeError(`the answer is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
