/** `evalgate serve` in a process of its own, as it is run for real, and what can be seen of it from outside. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { WORKSPACE_A } from './records.ts';
import { startSettings } from './start-settings.ts';

const PROGRAM = join(import.meta.dirname, '../../src/cli/evalgate.js');
const PROBE = join(import.meta.dirname, 'probe-worker.ts');
const START_WITHIN_MS = 30_000;
const MOST_LOG_LINES = 1000;
const UNLIMITED = 1_000_000_000;

const announcedSchema = z.object({ publicUrl: z.string(), adminUrl: z.string() });
const issuedSchema = z.object({ token: z.string() });

export interface GatewayProcessOptions {
  readonly env: Readonly<Record<string, string>>;
  /** How far its clock is off. */
  readonly clockOffsetMs?: number;
}

export interface Hold {
  /** The longest that its event loop was held, by the clock: others who want the CPU count too. */
  readonly heldMs: number;
  /** The longest by its thread's own CPU time. */
  readonly heldCpuMs: number;
}

export class GatewayProcess {
  readonly publicUrl: string;
  readonly adminUrl: string;
  /** The last lines of its log. */
  readonly log: readonly string[];
  readonly #child: ChildProcess;
  #hold: Hold = { heldMs: 0, heldCpuMs: 0 };

  private constructor(child: ChildProcess, urls: z.output<typeof announcedSchema>, log: readonly string[]) {
    this.#child = child;
    this.publicUrl = urls.publicUrl;
    this.adminUrl = urls.adminUrl;
    this.log = log;
    const reports = child.stdio[3];
    if (reports === null || reports === undefined) throw new Error('The gateway cannot report.');
    reports.on('data', (chunk: Buffer) => {
      const [heldMs = 0, heldCpuMs = 0] = chunk.toString().trim().split('\n').at(-1)?.split(' ').map(Number) ?? [];
      this.#hold = { heldMs, heldCpuMs };
    });
  }

  /** On free ports. Resolves once it says that it listens. */
  static async start({ env, clockOffsetMs = 0 }: GatewayProcessOptions): Promise<GatewayProcess> {
    const settings = startSettings();
    const child = spawn(process.execPath, [...settings.flags, '--import', PROBE, PROGRAM, 'serve', '--json'], {
      env: {
        ...process.env,
        ...settings.env,
        LOG_LEVEL: 'warn',
        PORT: '0',
        ADMIN_PORT: '0',
        CLOCK_OFFSET_MS: String(clockOffsetMs),
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    const log: string[] = [];
    child.stderr?.on('data', (chunk: Buffer) => {
      log.push(...chunk.toString().trimEnd().split('\n'));
      log.splice(0, log.length - MOST_LOG_LINES);
    });
    const late = setTimeout(() => child.kill('SIGKILL'), START_WITHIN_MS);
    try {
      return new GatewayProcess(child, await announcement(child, log), log);
    } finally {
      clearTimeout(late);
    }
  }

  /** Resident memory, now and at its most since `forgetPeaks`. Bytes. */
  memory(): { readonly nowBytes: number; readonly peakBytes: number } {
    const status = readFileSync(`/proc/${this.#pid}/status`, 'utf8');
    const bytesOf = (name: string): number =>
      1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]);
    return { nowBytes: bytesOf('VmRSS'), peakBytes: bytesOf('VmHWM') };
  }

  /** The longest holds since `forgetPeaks`. */
  hold(): Hold {
    return this.#hold;
  }

  /** From now on peaks count anew. */
  forgetPeaks(): void {
    writeFileSync(`/proc/${this.#pid}/clear_refs`, '5');
    this.#child.kill('SIGUSR2');
    this.#hold = { heldMs: 0, heldCpuMs: 0 };
  }

  /** A key of every scope in WORKSPACE_A, without limits that a test reaches unless it asks for them. */
  async issueKey(limits: { readonly perMinute?: number; readonly perHour?: number } = {}): Promise<string> {
    const response = await fetch(`${this.adminUrl}/api/keys`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        name: 'test',
        workspaceIds: [WORKSPACE_A],
        scopes: ['reports.read', 'calls.read', 'coaching.read'],
        perMinute: UNLIMITED,
        perHour: UNLIMITED,
        ...limits,
      }),
    });
    return issuedSchema.parse(await response.json()).token;
  }

  /** The sum of all samples of a metric whose labels hold that text. */
  async metric(name: string, labels = ''): Promise<number> {
    const text = await (await fetch(`${this.adminUrl}/metrics`)).text();
    const samples = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    return samples
      .filter((line) => line.includes(labels))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }

  get #pid(): number {
    if (this.#child.pid === undefined) throw new Error('The gateway is not running.');
    return this.#child.pid;
  }
}

/** The JSON document that it prints once it listens. */
async function announcement(child: ChildProcess, log: readonly string[]): Promise<z.output<typeof announcedSchema>> {
  const { stdout } = child;
  if (stdout === null) throw new Error('The gateway cannot announce itself.');
  let text = '';
  stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  while (!text.trimEnd().endsWith('}') || text.split('{').length !== text.split('}').length) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`The gateway did not start:\n${log.join('\n')}`);
    await Promise.race([once(stdout, 'data'), once(child, 'exit')]);
  }
  const announced = announcedSchema.safeParse(JSON.parse(text));
  if (!announced.success) throw new Error(`The gateway did not start:\n${text}`);
  return announced.data;
}
