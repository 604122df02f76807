/** Server processes pinned to one core, load pinned to another, and what the operating system says of their CPU time. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { z } from 'zod';

/** The server under measurement runs here, and nothing else that is ours. */
export const SERVER_CORE = 0;
/** Load, Redis, origin and store. */
export const OTHER_CORE = 1;
/** The prefix that runs a command there. */
export const ON_OTHER_CORE: readonly string[] = ['taskset', '-c', String(OTHER_CORE)];

export interface Started {
  readonly pid: number;
  readonly stop: () => Promise<void>;
}

export interface Launch {
  /** Null: whichever the system chooses. */
  readonly core: number | null;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Starts a process whose errors go to the null device, where an access log costs what it costs to write it. */
export function launch({ core, command, env, cwd }: Launch): Started & { readonly child: ChildProcess } {
  const nullDevice = openSync('/dev/null', 'w');
  const [file = '', ...args] = core === null ? command : ['taskset', '-c', String(core), ...command];
  const child = spawn(file, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', nullDevice],
  });
  closeSync(nullDevice);
  if (child.pid === undefined) throw new Error(`${command[0]} could not be started; taskset (util-linux) is needed`);
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  return {
    child,
    pid: child.pid,
    stop: async () => {
      child.kill('SIGTERM');
      const cut = setTimeout(() => child.kill('SIGKILL'), 5000);
      await ended;
      clearTimeout(cut);
    },
  };
}

/** Resolves with the first JSON document that the process prints. */
export async function firstDocument<T>(child: ChildProcess, schema: z.ZodType<T>): Promise<T> {
  if (child.stdout === null) throw new Error('the process has no standard output to read');
  const exit = new Promise<never>((_resolve, reject) => {
    // One that ended well has printed all that it will: it may be there to be read yet.
    child.once('exit', (code) => {
      if (code !== 0) reject(new Error(`${child.spawnargs.join(' ')} ended with status ${code}`));
    });
  });
  const document = async (): Promise<T> => {
    let text = '';
    for await (const line of createInterface({ input: child.stdout ?? process.stdin })) {
      text += line;
      // A document over several lines ends with a brace in the first column.
      if (text.startsWith('{') && (line.startsWith('}') || line.startsWith('{"')))
        return schema.parse(JSON.parse(text));
    }
    throw new Error(`${child.spawnargs.join(' ')} printed no JSON document`);
  };
  const found = await Promise.race([document(), exit]);
  // A pipe that nobody reads would block the process once it is full.
  child.stdout.resume();
  return found;
}

/** CPU time of a process and of all that descend from it, in nanoseconds, over all threads that still live. */
export function cpuNanos(pid: number): number {
  return family(pid).reduce((sum, member) => sum + ownCpuNanos(member), 0);
}

/**
 * How often a clock's tick found that the host had taken one of the two cores away, since the machine started: what was
 * measured meanwhile says nothing of the server.
 */
export function stolenTicks(): number {
  const lines = read('/proc/stat').split('\n');
  const steal = 8;
  return [SERVER_CORE, OTHER_CORE].reduce((sum, core) => {
    const line = lines.find((one) => one.startsWith(`cpu${core} `));
    return sum + Number(line?.split(' ')[steal] ?? 0);
  }, 0);
}

/** Resident memory of the process and its descendants, in bytes. */
export function residentBytes(pid: number): number {
  const kilobytes = family(pid).map((member) =>
    Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${member}/status`))?.[1] ?? 0),
  );
  return kilobytes.reduce((sum, value) => sum + value, 0) * 1024;
}

function family(pid: number): readonly number[] {
  return [pid, ...childrenOf(pid).flatMap(family)];
}

export function childrenOf(pid: number): readonly number[] {
  return readdirIfThere(`/proc/${pid}/task`).flatMap((task) =>
    read(`/proc/${pid}/task/${task}/children`)
      .split(' ')
      .filter((text) => text !== '')
      .map(Number),
  );
}

/** The scheduler's own figure: the usual one counts in steps of 10 ms. */
function ownCpuNanos(pid: number): number {
  const tasks = readdirIfThere(`/proc/${pid}/task`);
  return tasks.reduce((sum, task) => sum + Number(read(`/proc/${pid}/task/${task}/schedstat`).split(' ')[0] ?? 0), 0);
}

function readdirIfThere(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** Empty for what has ended meanwhile. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
