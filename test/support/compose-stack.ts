/** docker-compose.yml as it stands, under a name and at ports of its own, and what happens to its containers. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { vi } from 'vitest';
import { z } from 'zod';
import { programOnPath } from './process.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const FOUND_WITHIN_MS = 10_000;
const UP_WITHIN = { timeout: 180_000, interval: 100 };
/** The same each time, so that what a run that was broken off has left is taken away by the next. */
const PROJECT = 'evalgate-prove';
/** Beside the one of a stack that may be running from the same file. */
const FRONT_NETWORK = '10.213.75';
/** More than the balancer takes to see that a gateway is ready. */
const NOTICED_WITHIN_MS = 2000;

export type GatewayName = 'gateway-1' | 'gateway-2';

/** Why stacks can't be started here; null if they can. */
export async function whyNoCompose(): Promise<string | null> {
  if (programOnPath('docker') === null) return 'there is no docker on the PATH';
  try {
    await run('docker', ['compose', 'version'], { timeout: FOUND_WITHIN_MS });
  } catch {
    return 'docker has no Compose ("docker compose version" fails)';
  }
  try {
    await run('docker', ['info'], { timeout: FOUND_WITHIN_MS });
  } catch {
    return 'no docker daemon answers ("docker info" fails)';
  }
  return null;
}

export class ComposeStack {
  readonly #image: string;
  readonly #isBuilt: boolean;
  readonly #env: NodeJS.ProcessEnv;

  /** With EVALGATE_IMAGE, that image is taken as it is; without, one is built, and removed at the end. */
  constructor() {
    const given = process.env['EVALGATE_IMAGE'] ?? '';
    this.#isBuilt = given === '';
    this.#image = this.#isBuilt ? PROJECT : given;
    this.#env = {
      ...process.env,
      EVALGATE_IMAGE: this.#image,
      ADMIN_TOKEN: randomBytes(24).toString('hex'),
      API_ADDRESS: '127.0.0.1:0',
      ADMIN_PORT_1: '0',
      ADMIN_PORT_2: '0',
      FRONT_NETWORK,
      WORKERS: '1',
      DRAIN_DELAY: '2s',
      LOG_LEVEL: 'info',
    };
  }

  async build(): Promise<void> {
    if (this.#isBuilt) await this.#compose('build', '--quiet', 'gateway-1');
  }

  async imageBytes(): Promise<number> {
    return Number(await this.#docker('image', 'inspect', '--format', '{{.Size}}', this.#image));
  }

  /** From nothing: without what an earlier one has left. */
  async up(): Promise<void> {
    await this.#compose('down', '--volumes', '--timeout', '1');
    await this.#compose('up', '--detach', '--no-build');
  }

  /** Takes containers, networks, volumes and what was built away. */
  async down(): Promise<void> {
    await this.#compose('down', '--volumes', '--timeout', '1');
    if (this.#isBuilt) await this.#docker('image', 'rm', '--force', this.#image);
  }

  async url(): Promise<string> {
    return `http://${(await this.#compose('port', 'balancer', '8080')).trim()}`;
  }

  /** A key for that workspace, hardly limited. */
  async issueKey(workspaceId: string): Promise<string> {
    const scopes = ['reports.read', 'calls.read', 'coaching.read'].flatMap((scope) => ['--scope', scope]);
    const limits = ['--per-minute', '1000000', '--per-hour', '1000000'];
    const command = ['keys', 'create', '--name', 'prove', '--workspace', workspaceId, ...scopes, ...limits, '--json'];
    const printed = await this.#compose('exec', '-T', 'gateway-1', 'evalgate', ...command);
    return z.object({ key: z.string() }).parse(JSON.parse(printed)).key;
  }

  /** The first workspace that the sample store names in its log. */
  async workspaceId(): Promise<string> {
    const uuid = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/;
    return vi.waitFor(async () => {
      const found = uuid.exec(await this.#compose('logs', '--no-log-prefix', 'sample-store'));
      if (found === null) throw new Error('The sample store names no workspace.');
      return found[0];
    }, UP_WITHIN);
  }

  async kill(name: GatewayName): Promise<void> {
    await this.#docker('kill', await this.#containerOf(name));
  }

  /** By SIGTERM; resolves with its exit status. */
  async stop(name: GatewayName): Promise<number> {
    const container = await this.#containerOf(name);
    await this.#compose('stop', name);
    return Number(await this.#docker('inspect', '--format', '{{.State.ExitCode}}', container));
  }

  async freeze(name: GatewayName): Promise<void> {
    await this.#docker('pause', await this.#containerOf(name));
  }

  async thaw(name: GatewayName): Promise<void> {
    await this.#docker('unpause', await this.#containerOf(name));
  }

  async start(name: GatewayName): Promise<void> {
    await this.#compose('start', name);
  }

  /** Resolves once it is ready and the balancer has had the time to see it. */
  async untilReady(name: GatewayName): Promise<void> {
    // Where any port is taken, it is another one after each start.
    const address = (await this.#compose('port', name, '8081')).trim();
    await vi.waitFor(async () => {
      const { ok, status } = await fetch(`http://${address}/readyz`);
      if (!ok) throw new Error(`${name} is not ready: ${status}`);
    }, UP_WITHIN);
    await sleep(NOTICED_WITHIN_MS);
  }

  async #containerOf(name: GatewayName): Promise<string> {
    return (await this.#compose('ps', '--all', '--quiet', name)).trim();
  }

  #compose(...args: readonly string[]): Promise<string> {
    return this.#docker('compose', '--project-name', PROJECT, '--project-directory', ROOT, ...args);
  }

  async #docker(...args: readonly string[]): Promise<string> {
    const { stdout } = await run('docker', args, { cwd: ROOT, env: this.#env, maxBuffer: 64 * 2 ** 20 });
    return stdout;
  }
}
