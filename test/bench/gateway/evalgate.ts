/** The gateway as it is started in production, in front of a store in a process of its own, with a real Redis. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { PROGRAM } from '../../support/process.ts';
import { WORKSPACE_A } from '../../support/records.ts';
import { firstDocument, launch, OTHER_CORE, SERVER_CORE, type Started } from './processes.ts';
import type { Server } from './server.ts';

export interface Evalgate extends Server {
  readonly adminUrl: string;
  /** Issues a key that may read all that the store has; limits beyond what any load can use up, unless they are given. */
  createKey(limits?: { readonly perMinute: number; readonly perHour: number }): Promise<string>;
  /** So many, without limits. */
  createKeys(count: number): Promise<readonly string[]>;
}

export interface EvalgateOptions {
  readonly redisUrl: string;
  readonly store: Store;
  readonly env?: Readonly<Record<string, string>>;
  /** Settings that no environment variable has, as YAML. */
  readonly file?: string;
  readonly core?: number | null;
  /** The launcher, if it is not that of this checkout. */
  readonly program?: string;
}

export interface Store extends Started {
  readonly url: string;
  readonly token: string;
}

const MANY = 1_000_000_000;
const STORE = fileURLToPath(new URL('./store-process.ts', import.meta.url));
const servingSchema = z.object({ publicUrl: z.string(), adminUrl: z.string() });
const storeSchema = z.object({ port: z.number(), token: z.string() });
const createdSchema = z.object({ token: z.string() });

export async function startStore(): Promise<Store> {
  const { child, pid, stop } = launch({ core: OTHER_CORE, command: [process.execPath, STORE] });
  const { port, token } = await firstDocument(child, storeSchema);
  return { url: `http://127.0.0.1:${port}`, token, pid, stop };
}

export async function startEvalgate({
  redisUrl,
  store,
  env,
  file,
  core = SERVER_CORE,
  program = PROGRAM,
}: EvalgateOptions): Promise<Evalgate> {
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-bench-'));
  const configFile = join(folder, 'config.yaml');
  await writeFile(configFile, file ?? '{}\n');
  const { child, pid, stop } = launch({
    core,
    command: [process.execPath, program, 'serve', '--json'],
    env: {
      CONFIG_FILE: configFile,
      PORT: '0',
      ADMIN_PORT: '0',
      DRAIN_DELAY: '0s',
      REDIS_URL: redisUrl,
      UPSTREAM_URL: store.url,
      UPSTREAM_TOKEN: store.token,
      ...everFresh(),
      ...env,
    },
  });
  const { publicUrl, adminUrl } = await firstDocument(child, servingSchema);
  return {
    name: 'evalgate',
    url: publicUrl,
    adminUrl,
    pid,
    processes: Number(env?.['WORKERS'] ?? 1),
    stop: async () => {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
    createKey: (limits) => createKey(adminUrl, limits),
    createKeys: (count) => Promise.all(Array.from({ length: count }, () => createKey(adminUrl))),
  };
}

/** Hot reads stay hot. */
function everFresh(): Readonly<Record<string, string>> {
  const classes = ['LIST', 'EVALUATION', 'TRANSCRIPT'];
  return Object.fromEntries(classes.map((name) => [`CACHE_${name}_FRESH`, '24h']));
}

async function createKey(adminUrl: string, limits = { perMinute: MANY, perHour: MANY }): Promise<string> {
  const response = await fetch(`${adminUrl}/api/keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'benchmark',
      workspaceIds: [WORKSPACE_A],
      scopes: ['reports.read', 'calls.read', 'coaching.read'],
      ...limits,
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`no key was issued: ${response.status} ${text}`);
  return createdSchema.parse(JSON.parse(text)).token;
}
