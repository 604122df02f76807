/**
 * A request as by `fetch`, which never goes through a proxy. With `NODE_USE_ENV_PROXY`, Node's own `fetch` sends what is for the
 * admin listener of this machine, with its token, to the proxy of `HTTP_PROXY`.
 */
import type { IncomingMessage } from 'node:http';
import { Agent, request as requestHttp } from './node-http.ts';

interface DirectRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | null;
  /** Ends the request, and the reading of its answer. */
  readonly signal: AbortSignal;
}

export interface DirectResponse {
  readonly status: number;
  /** The value of a header, by its name in lower case; null if the answer has none. */
  readonly header: (name: string) => string | null;
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Rejects as `fetch` does: with the signal's reason, or with a TypeError whose cause is the system's error. Redirects are not
 * followed.
 */
export async function directFetch(
  url: string,
  { method = 'GET', headers = {}, body = null, signal }: DirectRequest,
): Promise<DirectResponse> {
  const send = url.startsWith('https:') ? await overTls() : overHttp;
  return new Promise((resolve, reject) => {
    const request = send(url, { method, headers: { ...headers } });
    const fail = (error: Error): void =>
      reject(signal.aborted ? signal.reason : new TypeError('fetch failed', { cause: error }));
    const onAbort = (): void => void request.destroy();
    signal.addEventListener('abort', onAbort);
    request.on('close', () => signal.removeEventListener('abort', onAbort));
    request.on('error', fail);
    request.on('response', (response) => resolve(responseOf(response, signal)));
    request.end(body ?? undefined);
  });
}

interface SendOptions {
  readonly method: string;
  readonly headers: Record<string, string>;
}

type Send = (url: string, options: SendOptions) => ReturnType<typeof requestHttp>;

// Agents of their own: only the global ones go through proxies.
const overHttp: Send = (url, options) => requestHttp(url, { ...options, agent: new Agent() });

/** TLS is loaded only if the address needs it. */
async function overTls(): Promise<Send> {
  const https = await import('node:https');
  return (url, options) => https.request(url, { ...options, agent: new https.Agent() });
}

function responseOf(message: IncomingMessage, signal: AbortSignal): DirectResponse {
  const { statusCode: status = 0, headers } = message;
  const onAbort = (): void => void message.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  signal.addEventListener('abort', onAbort);
  message.on('close', () => signal.removeEventListener('abort', onAbort));
  const header = (name: string): string | null => headers[name]?.toString() ?? null;
  return { status, header, body: message };
}

/** The whole body as text. Rejects as its reading does. */
export async function textOf({ body }: DirectResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return new TextDecoder().decode(Buffer.concat(chunks));
}
