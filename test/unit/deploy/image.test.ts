import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { loadConfig } from '../../../src/config/load.ts';
import { freePort } from '../../../src/server.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { readText, ROOT } from './files.ts';
import { gatewayOf } from './gateway-pod.ts';
import { readManifests } from './manifests.ts';

const dockerfile = readText('Dockerfile').replaceAll('\\\n', '');
const stages = dockerfile.split(/^(?=FROM )/m).filter((stage) => stage.startsWith('FROM '));
const image = stages.at(-1) ?? '';

/** What follows an instruction in a stage, each time. */
function instructions(stage: string, name: string): readonly string[] {
  return [...stage.matchAll(new RegExp(`^${name} +(.+)$`, 'gm'))].map(([, rest = '']) => rest.trim());
}

function argumentsOf(command: string): readonly string[] {
  return z.array(z.string()).parse(JSON.parse(command));
}

test('what is copied from the project is let into the build, and nothing else is', () => {
  const copied = instructions(dockerfile, 'COPY')
    .filter((rest) => !rest.startsWith('--from='))
    .flatMap((rest) => rest.split(' ').slice(0, -1))
    .map((path) => path.replace('./', ''));
  const [first, ...allowed] = readText('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(first).toBe('*');
  expect(allowed.map((line) => line.replace('!', '')).toSorted()).toEqual(copied.toSorted());
});

test('it runs as the user that the pod demands, given in numbers', () => {
  const { pod } = gatewayOf(readManifests().filter(({ place }) => !place.includes('/overlays/')));
  const { runAsUser, runAsGroup } = pod.securityContext;
  expect(instructions(image, 'USER')).toEqual([`${runAsUser}:${runAsGroup}`]);
});

test('built and run on the same base, a version of Node.js that the project asks for', () => {
  const bases = stages.map((stage) => instructions(stage, 'FROM')[0]?.split(' ')[0]);
  expect(new Set(bases)).toEqual(new Set(['node:24-slim']));
});

test('its ports are the defaults, and the API is reached from outside', () => {
  const { config } = loadConfig({ env: {} });
  expect(instructions(image, 'EXPOSE')).toEqual([`${config.server.port} ${config.admin.port}`]);
  expect(instructions(image, 'ENV').join(' ')).toContain('HOST=0.0.0.0');
});

test('without arguments it serves, with them it is the command line', () => {
  const flags = ['--min-semi-space-size=8', '--max-semi-space-size=8', '--memory-saver-mode'];
  const command = ['node', ...flags, '/app/src/cli/evalgate.js'];
  expect(instructions(image, 'ENTRYPOINT').map(argumentsOf)).toEqual([command]);
  expect(instructions(image, 'CMD').map(argumentsOf)).toEqual([['serve']]);
});

test('its memory is bounded as that of npm start is', () => {
  const { scripts } = z
    .object({ scripts: z.object({ start: z.string() }) })
    .parse(JSON.parse(readText('package.json')));
  const settings = scripts.start.match(/MALLOC_\w+=\d+/g) ?? [];
  expect(settings).toEqual(['MALLOC_ARENA_MAX=1', 'MALLOC_MMAP_THRESHOLD_=131072']);
  expect(instructions(image, 'ENV').join(' ').split(' ')).toEqual(expect.arrayContaining(settings));
  const [, ...flags] = argumentsOf(instructions(image, 'ENTRYPOINT')[0] ?? '').slice(0, -1);
  expect(scripts.start.match(/--\S+/g)).toEqual(flags);
});

/** Of what is said of paths in the image. */
function inProject(text: string): string {
  return text.replaceAll('/app/', `${ROOT}/`);
}

test('what is compiled in the build is what the gateway runs', async () => {
  const [compile = ''] = instructions(dockerfile, 'RUN').filter((command) => command.includes('--eval'));
  const [, ...entry] = argumentsOf(instructions(image, 'ENTRYPOINT')[0] ?? '');
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-compiled-'));
  try {
    const env = { ...process.env, NODE_COMPILE_CACHE: folder };
    await promisify(execFile)('sh', ['-c', inProject(compile)], { cwd: ROOT, env });
    const debug = { NODE_DEBUG_NATIVE: 'COMPILE_CACHE', UPSTREAM_URL: 'http://127.0.0.1:9', UPSTREAM_TOKEN: 'any' };
    const child = spawn(process.execPath, [...entry.map(inProject), 'serve', '--json'], {
      env: { ...env, ...debug, PORT: '0', ADMIN_PORT: '0', DRAIN_DELAY: '0s' },
    });
    child.stdout.once('data', () => child.kill('SIGTERM'));
    const lines = (await textOf(child.stderr)).split('\n').filter((line) => line.startsWith('[compile cache]'));
    const read = lines.filter((line) => line.includes('reading cache from'));
    expect(read.length).toBeGreaterThan(500);
    expect(read.filter((line) => !line.includes('success'))).toEqual([]);
    expect(lines.filter((line) => line.includes('rejected'))).toEqual([]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('its health check says yes of a gateway that is ready, and no where there is none', async () => {
  const [, check = ''] = /HEALTHCHECK .*? CMD (\[.*\])$/m.exec(dockerfile) ?? [];
  const [program, ...args] = argumentsOf(check);
  expect(program).toBe('node');
  const statusAt = (port: string): Promise<number | null> => {
    const child = spawn(process.execPath, args, { env: { ADMIN_PORT: port }, stdio: 'ignore' });
    return new Promise((resolve) => child.once('exit', resolve));
  };
  const gateway = await startTestGateway();
  try {
    expect(await statusAt(new URL(gateway.adminUrl).port)).toBe(0);
  } finally {
    await gateway.close();
  }
  expect(await statusAt(String(await freePort('127.0.0.1')))).toBe(1);
});
