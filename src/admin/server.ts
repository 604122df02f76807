/** The admin listener's own HTTP server, apart from the public one: it answers even if that is busy or draining. */
import { type Address, listen, type Listener, type ListenerOptions, StartError } from '../server.ts';
import { type AdminOptions, createAdminApp } from './app.ts';
import { isLoopback } from '../config/formats.ts';
import { withoutBrackets } from './guards.ts';

const REQUEST_TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 512;
const KEEP_ALIVE_TIMEOUT_MS = 5_000;
/** Probes must be answered while somebody sends headers slowly. */
const HEADERS_TIMEOUT_MS = 5_000;

/** Rejects with a StartError if the address cannot be used, or if it is not loopback and no token is set. */
export async function startAdminServer(
  options: AdminOptions,
  { host, port, maxConnectionsPerAddress }: Address & Required<Pick<ListenerOptions, 'maxConnectionsPerAddress'>>,
): Promise<Listener> {
  if (!isLoopback(withoutBrackets(host)) && options.tokens.length === 0) {
    throw new StartError(
      `The admin listener would be open to anyone who reaches ${host === '' ? 'this machine' : host}: that is no loopback address and ADMIN_TOKEN is not set. Set ADMIN_TOKEN, or set ADMIN_HOST to 127.0.0.1.`,
    );
  }
  return listen(
    createAdminApp(options),
    { host: withoutBrackets(host), port },
    {
      portSetting: 'ADMIN_PORT',
      headersTimeoutMs: HEADERS_TIMEOUT_MS,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      keepAliveTimeoutMs: KEEP_ALIVE_TIMEOUT_MS,
      maxConnections: MAX_CONNECTIONS,
      maxConnectionsPerAddress,
      errorBody: (message) => ({ error: { message } }),
    },
  );
}
