/** The admin listener's own HTTP server, apart from the public one: it answers even when that is busy or draining. */
import { listen, type Listener } from '../listener.ts';
import { StartError } from '../start-error.ts';
import { type AdminOptions, createAdminApp } from './app.ts';
import { bare, isLoopback } from './host.ts';

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 512;
const KEEP_ALIVE_TIMEOUT_MS = 5_000;

/**
 * Listens on host and port (0: any free one). Rejects with StartError where `host` is not loopback and no token is
 * set, with Node's own error where the address can't be had.
 */
export async function startAdminServer(
  options: AdminOptions,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<Listener> {
  if (!isLoopback(bare(host)) && options.tokens.length === 0) {
    throw new StartError(
      `The admin listener would be open to anyone who reaches ${host === '' ? 'this machine' : host}: that is no loopback address and ADMIN_TOKEN is not set. Set ADMIN_TOKEN, or set ADMIN_HOST to 127.0.0.1.`,
    );
  }
  const address = { host: bare(host), port };
  return listen(createAdminApp(options).callback(), address, {
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    keepAliveTimeoutMs: KEEP_ALIVE_TIMEOUT_MS,
    maxConnections: MAX_CONNECTIONS,
    errorBody: (message) => ({ error: { message } }),
  });
}
