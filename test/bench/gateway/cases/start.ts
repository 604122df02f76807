/** How long the packed program takes to start, beside a Node.js that does nothing. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPacked } from '../../../support/packed.ts';
import { firstJson } from '../../../support/process.ts';
import type { Bench } from '../bench.ts';
import { type CaseResult, reported } from '../case.ts';
import { median } from '../measure.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
/** By what is started: at most how many times as long as `node -e 0`. */
const BARS = { '--help': 3, 'keys list --help': 3, 'keys list': 6, serve: 6 } as const;
const MAX_READY_MS = 2000;

/** All in turn in each round; the bars are for the medians of the ratios of each round. */
export async function start(bench: Bench): Promise<CaseResult> {
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-bench-packed-'));
  try {
    const { program } = await installPacked(folder);
    const env = {
      ...process.env,
      NODE_COMPILE_CACHE: join(folder, 'compile-cache'),
      UPSTREAM_URL: bench.store.url,
      UPSTREAM_TOKEN: bench.store.token,
      PORT: '0',
      ADMIN_PORT: '0',
      DRAIN_DELAY: '0s',
    };
    const gateway = await bench.evalgate();
    const commandMs = (...args: readonly string[]): number => {
      const startedMs = performance.now();
      const { status } = spawnSync(process.execPath, args, { env, stdio: 'ignore' });
      if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}`);
      return performance.now() - startedMs;
    };
    const measures = {
      'node -e 0': () => commandMs('-e', '0'),
      '--help': () => commandMs(program, '--help'),
      'keys list --help': () => commandMs(program, 'keys', 'list', '--help'),
      'keys list': () => commandMs(program, 'keys', 'list', '--admin', gateway.adminUrl),
      serve: () => listeningMs(program, env),
      'npm start': () => npmStartMs(),
    };
    const rounds: Readonly<Record<keyof typeof measures, number>>[] = [];
    for (let round = 0; round < bench.effort.rounds + 1; round++) {
      rounds.push({
        'node -e 0': measures['node -e 0'](),
        '--help': measures['--help'](),
        'keys list --help': measures['keys list --help'](),
        'keys list': measures['keys list'](),
        serve: await measures.serve(),
        'npm start': await measures['npm start'](),
      });
    }
    // The first start fills the cache of compiled code.
    return resultOf(rounds.slice(1));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

type Name = keyof typeof BARS | 'node -e 0' | 'npm start';

function resultOf(rounds: readonly Readonly<Record<Name, number>>[]): CaseResult {
  const msOf = (name: Name): number => Math.round(median(rounds.map((round) => round[name])));
  const rows = (['--help', 'keys list --help', 'keys list', 'serve'] as const).map((name) => {
    const ratio = median(rounds.map((round) => round[name] / round['node -e 0']));
    return {
      name: `start, ${name === 'serve' ? 'serve until it listens' : name}`,
      bar: `at most ${BARS[name]} × node -e 0`,
      measured: `${ratio.toFixed(1)} ×, ${msOf(name)} ms`,
      ok: ratio <= BARS[name],
    };
  });
  const readyMs = msOf('npm start');
  return {
    rows: [
      reported('start, node -e 0', `${msOf('node -e 0')} ms`),
      ...rows,
      {
        name: 'npm start, ready with the sample store',
        bar: `at most ${MAX_READY_MS} ms`,
        measured: `${readyMs} ms`,
        ok: readyMs <= MAX_READY_MS,
      },
    ],
    tables: [],
  };
}

/** From the command to the document that says where it listens. */
async function listeningMs(program: string, env: NodeJS.ProcessEnv): Promise<number> {
  const startedMs = performance.now();
  const child = spawn(process.execPath, [program, 'serve', '--json'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  await Promise.race([firstJson(child), ended]);
  const tookMs = performance.now() - startedMs;
  if (child.exitCode !== null) throw new Error(`serve ended with ${child.exitCode}`);
  child.kill('SIGINT');
  await ended;
  return tookMs;
}

/** From the command to the line that says that it runs. */
async function npmStartMs(): Promise<number> {
  const startedMs = performance.now();
  const child = spawn('npm', ['start'], {
    cwd: ROOT,
    env: { ...process.env, PORT: '0', ADMIN_PORT: '0', DRAIN_DELAY: '0s' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  let text = '';
  for await (const chunk of child.stdout) {
    text += String(chunk);
    if (text.includes('One line for each endpoint')) break;
  }
  const tookMs = performance.now() - startedMs;
  child.kill('SIGINT');
  await ended;
  return tookMs;
}
