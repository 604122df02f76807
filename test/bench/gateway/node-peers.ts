/** The Node.js servers that the gateway is measured against; see ../peers/serve.js. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
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
  /** Every key may read these. */
  readonly workspaceIds?: readonly string[];
  /** Requests that each window of a key may hold; by default any load has room in it. */
  readonly limit?: number;
}

const SCRIPT = fileURLToPath(new URL('../peers/serve.js', import.meta.url));
const PEERS = dirname(SCRIPT);
const listeningSchema = z.object({ port: z.number() });

/** The peers are no dependencies of the project: they come with the first run. */
export function installPeers(): void {
  if (existsSync(`${PEERS}/node_modules/fastify`)) return;
  process.stderr.write('installing what the gateway is measured against ...\n');
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: PEERS, stdio: ['ignore', 'ignore', 'inherit'] });
}

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
