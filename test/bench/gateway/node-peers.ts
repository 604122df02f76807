/** The Node.js servers that the gateway is measured against; see ../peers/serve.js. */
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { firstDocument, launch, OTHER_CORE, SERVER_CORE } from './processes.ts';
import type { Server } from './server.ts';

export type NodePeer = 'node-http' | 'koa' | 'express' | 'fastify' | 'fastify-full' | 'forwarder';

export interface PeerOptions {
  /** Holds the bytes that are answered with. */
  readonly bodyFile?: string;
  readonly originUrl?: string;
  /** The token of a forwarder at the origin. */
  readonly token?: string;
  readonly redisUrl?: string;
  readonly keys?: readonly string[];
  /** Of all keys. */
  readonly workspaceIds?: readonly string[];
  /** Requests that each window of a key may hold; by default any load has room in it. */
  readonly limit?: number;
}

const SCRIPT = fileURLToPath(new URL('../peers/serve.js', import.meta.url));
const listeningSchema = z.object({ port: z.number() });

export async function startPeer(kind: NodePeer, options: PeerOptions, core = SERVER_CORE): Promise<Server> {
  const command = [process.execPath, SCRIPT, kind];
  const { child, pid, stop } = launch({
    core,
    command,
    env: { OPTIONS: JSON.stringify(options), NODE_ENV: 'production' },
  });
  const { port } = await firstDocument(child, listeningSchema);
  return { name: kind, url: `http://127.0.0.1:${port}`, pid, stop };
}

/** The origin of the caching peers. */
export function startOrigin(bodyFile: string): Promise<Server> {
  return startPeer('node-http', { bodyFile }, OTHER_CORE);
}
