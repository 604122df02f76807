/**
 * The package as `npm pack` makes it, run as an installed one: no TypeScript, no development tool, and no script of a
 * dependency at its installation.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { fileOf, openFolder } from '../support/files.ts';
import { forFile } from '../support/opened.ts';
import { installPacked, lockedPackages, productionPackages } from '../support/packed.ts';
import { GatewayProcess, runProcess } from '../support/process.ts';

const ROOT = join(import.meta.dirname, '../..');

const folder = await forFile(openFolder());
const { root, program } = await installPacked(folder.path);

test('it holds no TypeScript and nothing of the tests', () => {
  const all = readdirSync(root, { recursive: true, encoding: 'utf8' });
  const files = all.filter((name) => !name.startsWith('node_modules'));
  expect(files).toContain('dist/cli/run.js');
  expect(files.filter((name) => /\.ts$|^test|tsconfig/.test(name) && !name.startsWith('docs/examples/'))).toEqual([]);
});

test('it holds every document that it names, and its help says where', async () => {
  const code = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.js'),
  );
  const texts = code.map((name) => readFileSync(join(root, 'dist', name), 'utf8'));
  const named = new Set(texts.flatMap((text) => text.match(/\bdocs\/[\w-]+\.md/g) ?? []));
  expect(named.size).toBeGreaterThan(5);
  expect([...named].filter((name) => !existsSync(join(root, name)))).toEqual([]);
  const { stdout } = await runProcess(process.execPath, [program, '--help']);
  expect(stdout).toContain(`docs/ is in this folder; begin with docs/index.md:\n${root}/\n`);
});

test('each link of its documents leads to a file that it holds', () => {
  const documents = globSync(['*.md', 'docs/**/*.md', 'deploy/**/*.md'], { cwd: root });
  const broken = documents.flatMap((document) => {
    const links = readFileSync(join(root, document), 'utf8').matchAll(/\]\((?!https?:|mailto:|#)([^)\s#]+)/g);
    return [...links]
      .filter(([, path = '']) => !existsSync(join(root, dirname(document), path)))
      .map(([link]) => [document, link]);
  });
  expect(documents.length).toBeGreaterThan(25);
  expect(broken).toEqual([]);
});

test('no dependency of it runs a script when it is installed', () => {
  expect(lockedPackages().filter(([, hasInstallScript]) => hasInstallScript)).toEqual([]);
});

test('it holds the licence of each dependency, and the bill of materials names each', async () => {
  const licences = readFileSync(join(root, 'dist/LICENSES.txt'), 'utf8');
  const { stdout } = await runProcess(process.execPath, [join(ROOT, '.ci/shipped.ts'), 'sbom']);
  const named = z.object({ name: z.string() });
  const bom = z.object({ metadata: z.object({ component: named }), components: z.array(named) });
  const { metadata, components } = bom.parse(JSON.parse(stdout));
  const names = new Set(components.map(({ name }) => name));
  for (const path of ['node_modules/swagger-ui-dist', ...productionPackages()]) {
    const name = path.slice('node_modules/'.length);
    expect(licences).toContain(`\n${name} `);
    expect(names).toContain(name);
  }
  expect(names).not.toContain('vitest');
  expect(metadata.component.name).toBe('evalgate');
  // Scanners leave out what is only for development.
  expect(stdout).not.toContain(':development');
});

test('it serves the API, its documentation and the dashboard', async () => {
  const gateway = await GatewayProcess.start({ program });
  try {
    const paths = ['/openapi.json', '/docs', '/docs/page.js', '/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js'];
    for (const path of paths) expect((await fetch(gateway.publicUrl + path)).status).toBe(200);
    for (const path of ['/', '/dashboard/app.js']) {
      expect((await fetch(gateway.adminUrl + path)).status).toBe(200);
    }
  } finally {
    await gateway.stop();
  }
});

test('the image compiles every file of it beforehand, and a program of the image uses that', async () => {
  const [, step = ''] =
    /^RUN (node --input-type=module [^]*?)\n(?!  )/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')) ?? [];
  const cache = join(folder.path, 'compile-cache');
  const env = { ...process.env, NODE_COMPILE_CACHE: cache };
  const script = `cd "${root}" && ${step.replaceAll('/app/', `${root}/`)}`;
  expect(await runProcess('sh', ['-c', script], env)).toMatchObject({ code: 0, stderr: '' });
  const compiled = readdirSync(cache, { recursive: true });
  const args = [program, 'keys', 'list', '--help'];
  expect(await runProcess(process.execPath, args, env)).toMatchObject({ code: 0, stderr: '' });
  // It would keep what it had to compile by itself.
  expect(readdirSync(cache, { recursive: true })).toEqual(compiled);
});

test('its commands run', async () => {
  const transcript = fileOf('Ann: Hello.\nBob: Hi.\n', 'call.txt');
  const { code, stdout } = await runProcess(process.execPath, [program, 'transcript', transcript, '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ turnCount: 2 });
  expect(code).toBe(0);
});

test('it names itself as it was installed, without npx', async () => {
  const env = { ...process.env, PORT: '0', ADMIN_PORT: '0', UPSTREAM_URL: 'http://127.0.0.1:1' };
  const gateway = spawn(process.execPath, [program, 'serve'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const [said] = z.tuple([z.instanceof(Buffer)]).parse(await once(gateway.stdout, 'data'));
  gateway.kill('SIGINT');
  expect(said.toString()).toMatch(/^ {2}evalgate keys create /m);
  expect(await once(gateway, 'exit')).toEqual([0, null]);
});

test('an older Node.js is named beside the one that it needs, in one sentence', async () => {
  const pretence = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.14.0' } })";
  const old = ['--import', `data:text/javascript,${encodeURIComponent(pretence)}`];
  expect(await runProcess(process.execPath, [...old, program, '--version'])).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'evalgate needs Node.js 22.15 or newer, and this is 22.14.0: install a newer one from https://nodejs.org.\n',
  });
});
