/**
 * `fetch` that never goes through a proxy. With `NODE_USE_ENV_PROXY`, Node's own sends what is for the admin listener of
 * this machine, with its token, to the proxy of `HTTP_PROXY`.
 */
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { Readable } from 'node:stream';

interface DirectRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | null;
  /** Ends the request, and the reading of its answer. */
  readonly signal: AbortSignal;
}

/** Statuses whose answers have no body. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Rejects as `fetch` does: with the signal's reason, or with a TypeError whose cause is the system's error. Redirects are not
 * followed.
 */
export function directFetch(
  url: string,
  { method = 'GET', headers = {}, body = null, signal }: DirectRequest,
): Promise<Response> {
  // Agents of their own: only the global ones go through proxies.
  const isTls = url.startsWith('https:');
  const options = { method, headers: { ...headers }, agent: isTls ? new HttpsAgent() : new HttpAgent() };
  return new Promise((resolve, reject) => {
    const request = isTls ? requestHttps(url, options) : requestHttp(url, options);
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

function responseOf(message: IncomingMessage, signal: AbortSignal): Response {
  const { statusCode: status = 0, headers } = message;
  signal.addEventListener(
    'abort',
    () => void message.destroy(signal.reason instanceof Error ? signal.reason : undefined),
  );
  const init = {
    status,
    headers: Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]),
  };
  if (!WITHOUT_BODY.has(status)) return new Response(Readable.toWeb(message), init);
  message.resume();
  return new Response(null, init);
}
