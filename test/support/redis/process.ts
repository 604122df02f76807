/** Redis servers that run as processes of this machine. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectWhenUp } from './client.ts';
import type { ServerControl, ServerHost, ServerSetup } from './server.ts';

export interface ServerProgram {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Where a server runs that is not just a process of this machine: a host of a test's own network. */
export interface ServerPlace {
  readonly address: string;
  /** The prefix of its command. */
  readonly through: readonly string[];
}

const HERE: ServerPlace = { address: '127.0.0.1', through: [] };

const running = new Set<ChildProcess>();
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));

export function openProcessHost(program: ServerProgram, place: ServerPlace = HERE): ServerHost {
  const controls: ServerControl[] = [];
  return {
    address: place.address,
    launch: async (setup) => {
      const directory = await mkdtemp(join(tmpdir(), 'evalgate-redis-'));
      const lines = [`port ${setup.port}`, `bind ${place.address}`, 'protected-mode no', ...setup.config];
      await writeFile(join(directory, 'redis.conf'), lines.join('\n'));
      const control = controlOf(program, place, { ...setup, directory });
      controls.push(control);
      await control.start();
      return control;
    },
    close: async () => void (await Promise.all(controls.map((control) => control.remove()))),
  };
}

function controlOf(
  program: ServerProgram,
  place: ServerPlace,
  { port, isSentinel, directory }: ServerSetup & { readonly directory: string },
): ServerControl {
  let child: ChildProcess | null = null;
  const kill = async (): Promise<void> => {
    const ending = child;
    child = null;
    if (ending === null) return;
    running.delete(ending);
    if (ending.exitCode === null && ending.signalCode === null && ending.kill('SIGKILL')) await once(ending, 'exit');
  };
  return {
    start: async () => {
      child = await spawnIn(directory, { program, place, isSentinel: isSentinel === true });
      running.add(child);
      const answering = connectWhenUp(`redis://${place.address}:${port}`);
      const client = await Promise.race([answering, once(child, 'exit').then(() => null)]);
      if (client === null) {
        answering.then((late) => late.disconnect()).catch(() => undefined);
        throw new Error(`${program.path} did not start:\n${await readFile(join(directory, 'log'), 'utf8')}`);
      }
      // Another program's server at this port would answer too.
      const isOurs = (await client.info('server')).includes(`process_id:${child.pid}\r\n`);
      client.disconnect();
      if (!isOurs) throw new Error(`Another program took port ${port}.`);
    },
    pause: async () => void child?.kill('SIGSTOP'),
    resume: async () => void child?.kill('SIGCONT'),
    kill,
    remove: async () => {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

interface Spawned {
  readonly program: ServerProgram;
  readonly place: ServerPlace;
  readonly isSentinel: boolean;
}

async function spawnIn(directory: string, { program, place, isSentinel }: Spawned): Promise<ChildProcess> {
  const log = await open(join(directory, 'log'), 'w');
  try {
    const options = isSentinel ? ['--sentinel'] : [];
    const [file = '', ...args] = [...place.through, program.path, 'redis.conf', ...options];
    return spawn(file, args, {
      cwd: directory,
      env: { ...process.env, ...program.env },
      stdio: ['ignore', log.fd, log.fd],
    });
  } finally {
    await log.close();
  }
}
