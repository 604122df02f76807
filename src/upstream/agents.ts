/** The connections to the store: kept alive, bounded in number, never through a proxy. */
import { Agent as HttpAgent, type AgentOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';

/** Below the shortest idle time that common servers allow (5 s), so that a call seldom meets a connection being closed. */
const IDLE_TIMEOUT_MS = 4000;

export interface Agents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
  /** Closes every connection, those in use included. */
  destroy(): void;
}

/** Calls beyond `maxConnections` wait for a connection; their deadline runs meanwhile. */
export function createAgents(maxConnections: number): Agents {
  const options = {
    keepAlive: true,
    maxSockets: maxConnections,
    maxFreeSockets: maxConnections,
    timeout: IDLE_TIMEOUT_MS,
    scheduling: 'lifo',
  } satisfies AgentOptions;
  const http = new HttpAgent(options);
  const https = new HttpsAgent(options);
  return {
    http,
    https,
    destroy: () => {
      http.destroy();
      https.destroy();
    },
  };
}
