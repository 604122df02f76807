/**
 * The launcher of processes: `evalgate serve` as an operator runs it, on free ports, with its log, its admin listener and
 * its signals.
 *
 *     const gateway = await GatewayProcess.start({ env: { REDIS_URL: redis.url, UPSTREAM_URL: store.url } });
 *     const key = await gateway.issueKey();
 *     await gateway.get('/v2/calls/ev_1', key);
 *     await gateway.stop();
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { WORKSPACE_A } from './records.ts';

export const PROGRAM = join(import.meta.dirname, '../../src/cli/evalgate.js');
const PROBE = join(import.meta.dirname, 'probe-worker.ts');
const START_WITHIN_MS = 60_000;
const CENSUS_WITHIN_MS = 10_000;
const MAX_LOG_LINES = 2000;
const UNLIMITED = 1_000_000_000;

const announcedSchema = z.object({ publicUrl: z.string(), adminUrl: z.string(), demo: z.unknown() });
const issuedSchema = z.object({ key: z.object({ keyId: z.string() }), token: z.string() });
const lineSchema = z.looseObject({ msg: z.string(), pid: z.number() });
const workerSchema = z.object({ workerPid: z.number(), time: z.coerce.date() });
const readinessSchema = z.object({
  status: z.string(),
  dependencies: z.array(z.object({ name: z.string(), status: z.string(), detail: z.string() })),
});

export type LogLine = z.output<typeof lineSchema>;
export type Exit = readonly [code: number | null, signal: NodeJS.Signals | null];

export interface ProcessOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly clockOffsetMs?: number;
  /** Whether it reports how long its event loop is held. Not with WORKERS. */
  readonly isProbed?: boolean;
  readonly onLine?: (line: string) => void;
  /** The launcher, if it is that of another checkout. */
  readonly program?: string;
  /** The prefix of its command, if it is to run on a host of a test's own network. */
  readonly through?: readonly string[];
}

/** The timers and the heap of a process after a full collection. */
export interface Census {
  readonly timers: number;
  readonly heapBytes: number;
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
  readonly pid: number;
  /** As it announced it; null in front of a real store. */
  readonly demo: unknown;
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #log: Log;
  readonly #adminToken: string | undefined;
  readonly #reports: Interface | null;
  #hold: Hold = { heldMs: 0, heldCpuMs: 0 };

  private constructor(child: ChildProcess, log: Log, urls: z.output<typeof announcedSchema>, adminToken?: string) {
    this.#child = child;
    this.#log = log;
    this.#adminToken = adminToken?.split(',')[0]?.split('=').at(-1);
    this.publicUrl = urls.publicUrl;
    this.adminUrl = urls.adminUrl;
    this.demo = urls.demo;
    this.pid = child.pid ?? 0;
    this.exited = log.exited;
    const reports = child.stdio[3];
    this.#reports = reports instanceof Readable ? createInterface({ input: reports }) : null;
    this.#reports?.on('line', (line) => {
      const [kind, heldMs = 0, heldCpuMs = 0] = valuesOf(line);
      if (kind === 'hold') this.#hold = { heldMs, heldCpuMs };
    });
  }

  /** On free ports. Resolves once it announces that it listens; rejects with its log if it ends before. */
  static async start({
    env = {},
    clockOffsetMs = 0,
    isProbed = false,
    onLine,
    program = PROGRAM,
    through = [],
  }: ProcessOptions = {}) {
    const hasProbe = isProbed || clockOffsetMs !== 0;
    // With its option given, the launcher need not replace itself, which would close the probe's descriptor.
    const options = ['--disable-sigusr1', ...(hasProbe ? ['--import', PROBE] : [])];
    const command = [process.execPath, ...options, program, 'serve', '--demo', '--json'];
    const [file = '', ...args] = [...through, ...command];
    const child = spawn(file, args, {
      env: { ...process.env, PORT: '0', ADMIN_PORT: '0', CLOCK_OFFSET_MS: String(clockOffsetMs), ...env },
      stdio: ['ignore', 'pipe', 'pipe', hasProbe ? 'pipe' : 'ignore'],
    });
    const killNow = (): void => void child.kill('SIGKILL');
    process.once('exit', killNow);
    child.once('exit', () => process.off('exit', killNow));
    const log = new Log(child, onLine);
    const late = setTimeout(killNow, START_WITHIN_MS);
    try {
      const announced = announcedSchema.parse(await Promise.race([firstJson(child), log.failure()]));
      const gateway = new GatewayProcess(child, log, announced, env['ADMIN_TOKEN']);
      // The log comes in batches, so its lines may be later than the announcement.
      const workers = Number(env['WORKERS'] ?? 1);
      if (workers > 1) await gateway.untilReady(workers);
      return gateway;
    } finally {
      clearTimeout(late);
    }
  }

  get log(): readonly string[] {
    return this.#log.tail;
  }

  /** The last lines of the log with that message. */
  logged(message: string): readonly LogLine[] {
    return this.#log.tail.flatMap((line) => {
      const parsed = lineSchema.safeParse(jsonOf(line));
      return parsed.success && parsed.data.msg === message ? [parsed.data] : [];
    });
  }

  /** The processes of all workers that were ever ready, oldest first. */
  get workerPids(): readonly number[] {
    return this.#log.workerPids;
  }

  /** Resolves when so many workers have been ready since the start. */
  async untilReady(count: number): Promise<void> {
    while (this.workerPids.length < count) await once(this.#log.input, 'line');
  }

  /** Resolves when that worker has crashed, with the time at which the first process noticed. Unix milliseconds. */
  async untilEnded(workerPid: number): Promise<number> {
    for (;;) {
      const atMs = this.#log.endedAtMs.get(workerPid);
      if (atMs !== undefined) return atMs;
      await once(this.#log.input, 'line');
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** SIGTERM, and how it ended. */
  async stop(): Promise<Exit> {
    this.signal('SIGTERM');
    return this.exited;
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.exited;
  }

  get(path: string, key: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return fetch(this.publicUrl + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
  }

  async status(path: string, key: string): Promise<number> {
    const response = await this.get(path, key);
    await response.arrayBuffer();
    return response.status;
  }

  admin(method: string, path: string, body?: object): Promise<Response> {
    const headers = {
      ...(body && { 'content-type': 'application/json' }),
      ...(this.#adminToken !== undefined && { authorization: `Bearer ${this.#adminToken}` }),
    };
    return fetch(this.adminUrl + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  }

  /** The JSON that the admin listener answers; throws if it refuses. */
  async administer(method: string, path: string, body?: object): Promise<unknown> {
    const response = await this.admin(method, path, body);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  async readiness() {
    const response = await this.admin('GET', '/readyz');
    return { code: response.status, ...readinessSchema.parse(await response.json()) };
  }

  /** A key of every scope in WORKSPACE_A, without limits that a test reaches unless it wants others. */
  async issue(wanted: object = {}): Promise<{ readonly keyId: string; readonly token: string }> {
    const { key, token } = issuedSchema.parse(
      await this.administer('POST', '/api/keys', {
        name: 'test',
        workspaceIds: [WORKSPACE_A],
        scopes: ['reports.read', 'calls.read', 'coaching.read'],
        perMinute: UNLIMITED,
        perHour: UNLIMITED,
        ...wanted,
      }),
    );
    return { keyId: key.keyId, token };
  }

  async issueKey(wanted: object = {}): Promise<string> {
    return (await this.issue(wanted)).token;
  }

  /** The sum of all samples of a metric whose labels hold that text. */
  async metric(name: string, labels = ''): Promise<number> {
    const text = await (await this.admin('GET', '/metrics')).text();
    return text
      .split('\n')
      .filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(labels))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }

  /** Resident memory, now and at its most since `forgetPeaks`. Bytes. */
  memory(): { readonly nowBytes: number; readonly peakBytes: number } {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    const bytesOf = (name: string): number =>
      1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]);
    return { nowBytes: bytesOf('VmRSS'), peakBytes: bytesOf('VmHWM') };
  }

  /** The longest holds since `forgetPeaks`, of a process that is probed. */
  hold(): Hold {
    return this.#hold;
  }

  /** Only for a process that is probed; it is held meanwhile. */
  async census(): Promise<Census> {
    if (this.#reports === null) throw new Error('This process is not probed.');
    const reports = on(this.#reports, 'line', { signal: AbortSignal.timeout(CENSUS_WITHIN_MS) });
    this.signal('SIGWINCH');
    for await (const [line] of reports) {
      const [kind, timers = 0, heapBytes = 0] = valuesOf(String(line));
      if (kind === 'census') return { timers, heapBytes };
    }
    throw new Error('It has ended.');
  }

  forgetPeaks(): void {
    writeFileSync(`/proc/${this.pid}/clear_refs`, '5');
    this.signal('SIGUSR2');
    this.#hold = { heldMs: 0, heldCpuMs: 0 };
  }
}

/** The kind of a line of the probe, and its figures. */
function valuesOf(line: string): readonly [string, ...number[]] {
  const [kind = '', ...figures] = line.split(' ');
  return [kind, ...figures.map(Number)];
}

class Log {
  readonly tail: string[] = [];
  readonly workerPids: number[] = [];
  readonly endedAtMs = new Map<number, number>();
  readonly input: Interface;
  readonly exited: Promise<Exit>;

  constructor(child: ChildProcess, onLine: ((line: string) => void) | undefined) {
    if (child.stderr === null) throw new Error('It has no log.');
    this.input = createInterface({ input: child.stderr });
    this.input.on('line', (line) => {
      onLine?.(line);
      this.tail.push(line);
      if (this.tail.length > MAX_LOG_LINES) this.tail.shift();
      if (line.includes('"worker ready"')) {
        this.workerPids.push(workerSchema.parse(jsonOf(line)).workerPid);
      } else if (line.includes('"worker ended by itself')) {
        const { workerPid, time } = workerSchema.parse(jsonOf(line));
        this.endedAtMs.set(workerPid, time.getTime());
      }
    });
    const exit = Promise.withResolvers<Exit>();
    child.once('exit', (code, signal) => exit.resolve([code, signal]));
    const closed = once(this.input, 'close');
    this.exited = exit.promise.then(async (how) => {
      await closed;
      return how;
    });
  }

  async failure(): Promise<never> {
    const [code, signal] = await this.exited;
    throw new Error(`It ended with ${code ?? signal}:\n${this.tail.join('\n')}`);
  }
}

export function runProcess(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve) => {
    const child = execFile(file, args, { env, maxBuffer: Infinity }, (_, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}

/** The first JSON document that a process prints. Never resolves if it prints none. */
export function firstJson({ stdout }: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => {
    let text = '';
    stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const found = jsonOf(text);
      if (found !== undefined) resolve(found);
    });
  });
}

/** The program's path, from the first folder of the PATH that has it; null if none has. */
export function programOnPath(name: string): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
