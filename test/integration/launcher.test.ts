/** The launcher, called with a Node.js that is too old: it starts the one that comes with evalgate, as if it were one process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { fileOf, openFolder } from '../support/files.ts';
import { startTestGateway } from '../support/gateway.ts';
import { forFile } from '../support/opened.ts';
import { runProcess } from '../support/process.ts';

const ROOT = join(import.meta.dirname, '../..');
const PROGRAM = join(ROOT, 'src/cli/evalgate.js');
const PRETENCE = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.11.0' } })";
const OLD = ['--import', `data:text/javascript,${encodeURIComponent(PRETENCE)}`];

/** Folders of a launcher with the bundled Node.js, and of one without. */
const folder = await forFile(openFolder());

test('the exit status and the output are those of the program', async () => {
  expect(await runProcess(process.execPath, [...OLD, PROGRAM, '--version'])).toMatchObject({ code: 0, stderr: '' });
  expect(await runProcess(process.execPath, [...OLD, PROGRAM, 'keys', 'show'])).toMatchObject({ code: 2, stdout: '' });
});

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s reaches the program, which ends by itself', async (signal) => {
  const launcher = spawn(process.execPath, [...OLD, PROGRAM, 'sample-upstream', '--port', '0', '--evaluations', '5'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(launcher.stdout, 'data');
  launcher.kill(signal);
  // sample-upstream handles two of the three; the third ends it, and the launcher with it.
  expect(await once(launcher, 'exit')).toEqual(signal === 'SIGHUP' ? [null, signal] : [0, null]);
});

test.each([
  ['by a Node.js that is recent', []],
  ['by one that is too old', OLD],
])('SIGUSR1 opens no inspector, and ends nothing (started %s)', async (_how, options) => {
  const args = [...options, PROGRAM, 'sample-upstream', '--port', '0', '--evaluations', '5'];
  const launcher = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let heard = '';
  launcher.stderr.on('data', (chunk: Buffer) => (heard += chunk.toString()));
  const [said] = z.tuple([z.instanceof(Buffer)]).parse(await once(launcher.stdout, 'data'));
  const [url = ''] = /http:\/\/\S+/.exec(said.toString()) ?? [];
  launcher.kill('SIGUSR1');
  // An inspector is announced well within that many round trips.
  for (let trips = 0; trips < 50; trips += 1) expect((await fetch(url)).status).toBeGreaterThan(0);
  expect(heard).not.toMatch(/debugger|inspector/i);
  launcher.kill('SIGTERM');
  expect(await once(launcher, 'exit')).toEqual([0, null]);
});

describe('without the bundled Node.js', () => {
  test('it says what to do and ends with 1', async () => {
    const path = join(folder.path, 'src/cli/evalgate.js');
    await mkdir(join(folder.path, 'src/cli'), { recursive: true });
    folder.write('package.json', '{"type":"module"}');
    await copyFile(PROGRAM, path);
    const { code, stdout, stderr } = await runProcess(process.execPath, [...OLD, path, '--version']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      /^evalgate needs Node\.js 24\.0 or newer, and this is 20\.11\.0: run `npm ci` in its folder, /,
    );
  });
});

test('it works through a link in another folder', async () => {
  const link = join(folder.path, 'evalgate');
  await symlink(PROGRAM, link);
  const { code, stdout } = await runProcess(process.execPath, [...OLD, link, '--version']);
  expect([code, stdout]).toMatchObject([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/)]);
});

/** Options of Node.js that refuse to load any library but those. */
function onlyWith(...libraries: readonly string[]): readonly string[] {
  const hooks = `import { registerHooks } from 'node:module';
registerHooks({
  load(url, context, next) {
    const [, library] = url.split('/node_modules/');
    if (library !== undefined && !${JSON.stringify(libraries)}.includes(library.split('/')[0])) throw new Error('loaded ' + url);
    return next(url, context);
  },
});`;
  return ['--import', `data:text/javascript,${encodeURIComponent(hooks)}`];
}

test.each(['variables', 'file'])(
  'a health check by the %s loads no library, and its exit status says whether the gateway is live',
  async (by) => {
    const gateway = await forFile(startTestGateway());
    const args = [...onlyWith(), PROGRAM, 'health'];
    const at = (port: string): NodeJS.ProcessEnv =>
      by === 'file'
        ? { CONFIG_FILE: fileOf(`admin:\n  port: ${port}\n`) }
        : { ADMIN_HOST: '127.0.0.1', ADMIN_PORT: port };
    const live = { code: 0, stdout: `The gateway at ${gateway.adminUrl} is live.\n`, stderr: '' };
    const { port } = new URL(gateway.adminUrl);
    expect(await runProcess(process.execPath, args, { ...process.env, ...at(port) })).toEqual(live);
    const gone = await runProcess(process.execPath, args, { ...process.env, ...at('1') });
    const stderr = 'No live gateway answers at http://127.0.0.1:1 (ECONNREFUSED).\n';
    expect(gone).toEqual({ code: 1, stdout: '', stderr });
  },
);

test.each(['', 'serve', 'keys', 'keys create', 'keys list', 'health', 'doctor', 'sync', 'transcript', 'openapi'])(
  'the help of "%s" loads no library but that of the command line, and the bounds of memory',
  async (words) => {
    const args = [...onlyWith('commander', 'lru-cache'), PROGRAM, ...words.split(' ').filter(Boolean), '--help'];
    const { code, stdout, stderr } = await runProcess(process.execPath, args);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`Usage: evalgate${words === '' ? '' : ` ${words}`}`);
  },
);
