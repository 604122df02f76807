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

const running = new Set<ChildProcess>();
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));

export function openProcessHost(program: ServerProgram): ServerHost {
  const controls: ServerControl[] = [];
  return {
    launch: async (setup) => {
      const directory = await mkdtemp(join(tmpdir(), 'evalgate-redis-'));
      const lines = [`port ${setup.port}`, 'bind 127.0.0.1', ...setup.config];
      await writeFile(join(directory, 'redis.conf'), lines.join('\n'));
      const control = controlOf(program, setup, directory);
      controls.push(control);
      await control.start();
      return control;
    },
    close: async () => void (await Promise.all(controls.map((control) => control.remove()))),
  };
}

function controlOf(program: ServerProgram, { port, isSentinel }: ServerSetup, directory: string): ServerControl {
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
      child = await spawnIn(directory, program, isSentinel === true);
      running.add(child);
      const answering = connectWhenUp(`redis://127.0.0.1:${port}`);
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

async function spawnIn(directory: string, { path, env }: ServerProgram, isSentinel: boolean): Promise<ChildProcess> {
  const log = await open(join(directory, 'log'), 'w');
  try {
    return spawn(path, isSentinel ? ['redis.conf', '--sentinel'] : ['redis.conf'], {
      cwd: directory,
      env: { ...process.env, ...env },
      stdio: ['ignore', log.fd, log.fd],
    });
  } finally {
    await log.close();
  }
}
