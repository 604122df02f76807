/** `evalgate serve` as an operator runs it: started, signalled, ended; one process, or a first one and its workers. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { WORKSPACE_A } from './records.ts';
import { startSettings } from './start-settings.ts';

const PROGRAM = join(import.meta.dirname, '../../src/cli/evalgate.js');
const UNLIMITED = 1_000_000_000;

const announcedSchema = z.object({ publicUrl: z.string(), adminUrl: z.string(), demo: z.unknown() });
const issuedSchema = z.object({ key: z.object({ keyId: z.string() }), token: z.string() });
const lineSchema = z.looseObject({ msg: z.string(), pid: z.number() });
const workerSchema = z.object({ workerPid: z.number(), time: z.coerce.date() });
const readinessSchema = z.object({
  status: z.string(),
  dependencies: z.array(z.object({ name: z.string(), status: z.string(), detail: z.string() })),
});

type LogLine = z.output<typeof lineSchema>;
type Exit = readonly [code: number | null, signal: NodeJS.Signals | null];

export class Served {
  readonly publicUrl: string;
  readonly adminUrl: string;
  readonly pid: number;
  /** As it announced it; null in front of a real store. */
  readonly demo: unknown;
  /** How it ended. */
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #log: Log;
  /** What its admin listener asks for. */
  #adminToken: string | undefined;

  private constructor(child: ChildProcess, urls: z.output<typeof announcedSchema>, log: Log) {
    this.#child = child;
    this.demo = urls.demo;
    this.publicUrl = urls.publicUrl;
    this.adminUrl = urls.adminUrl;
    this.pid = child.pid ?? 0;
    this.#log = log;
    this.exited = log.exited;
  }

  /** On free ports. Resolves once it says that it listens; rejects with its output where it ends before. */
  static async start(env: Readonly<Record<string, string>>, onLine: (line: string) => void = () => undefined) {
    const settings = startSettings();
    const child = spawn(process.execPath, [...settings.flags, PROGRAM, 'serve', '--json'], {
      env: { ...process.env, ...settings.env, PORT: '0', ADMIN_PORT: '0', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const log = new Log(child, onLine);
    process.once('exit', () => child.kill('SIGKILL'));
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
    for (;;) {
      const announced = announcedSchema.safeParse(jsonOf(text));
      if (announced.success) {
        const served = new Served(child, announced.data, log);
        served.#adminToken = env['ADMIN_TOKEN'];
        return served;
      }
      if (child.exitCode !== null || child.signalCode !== null) {
        await log.exited;
        throw new Error(`It ended with ${child.exitCode ?? child.signalCode}:\n${log.tail.join('\n')}`);
      }
      await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
    }
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

  /** Resolves when that worker has crashed, with the time at which the first process saw it gone. Unix milliseconds. */
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

  admin(method: string, path: string, body?: object): Promise<Response> {
    const headers = {
      ...(body && { 'content-type': 'application/json' }),
      ...(this.#adminToken !== undefined && { authorization: `Bearer ${this.#adminToken}` }),
    };
    return fetch(this.adminUrl + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  }

  async readiness() {
    const response = await this.admin('GET', '/readyz');
    return { code: response.status, ...readinessSchema.parse(await response.json()) };
  }

  /** A key of every scope in WORKSPACE_A, without limits that a test reaches unless it asks for others. */
  async issueKey(wanted: object = {}): Promise<{ readonly keyId: string; readonly token: string }> {
    const scopes = ['reports.read', 'calls.read', 'coaching.read'];
    const limits = { perMinute: UNLIMITED, perHour: UNLIMITED };
    const body = { name: 'test', workspaceIds: [WORKSPACE_A], scopes, ...limits, ...wanted };
    const response = await this.admin('POST', '/api/keys', body);
    const { key, token } = issuedSchema.parse(await response.json());
    return { keyId: key.keyId, token };
  }
}

const TAIL = 2000;

/** What it writes to its standard error, line by line. */
class Log {
  readonly tail: string[] = [];
  readonly workerPids: number[] = [];
  readonly endedAtMs = new Map<number, number>();
  readonly input;
  readonly exited: Promise<Exit>;

  constructor(child: ChildProcess, onLine: (line: string) => void) {
    if (child.stderr === null) throw new Error('It has no log.');
    this.input = createInterface({ input: child.stderr });
    this.input.on('line', (line) => {
      onLine(line);
      this.tail.push(line);
      if (this.tail.length > TAIL) this.tail.shift();
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
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
