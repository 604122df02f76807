/** The rules of which room may import which stand in .oxlintrc.json; here they are held, and shown to be able to fail. */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'evalgate-imports-'));
  await copyFile(join(root, '.oxlintrc.json'), join(folder, '.oxlintrc.json'));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Verdict {
  readonly isClean: boolean;
  readonly output: string;
}

function lint(cwd: string, path: string): Promise<Verdict> {
  const oxlint = join(root, 'node_modules/.bin/oxlint');
  return new Promise((resolve) => {
    execFile(oxlint, ['-c', '.oxlintrc.json', path], { cwd }, (error, output) => {
      resolve({ isClean: error === null, output });
    });
  });
}

async function plant(file: string, imported: string): Promise<Verdict> {
  const path = join(folder, file);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `import { x } from '${imported}';\nexport const y: unknown = x;\n`);
  return lint(folder, file);
}

test('no room imports what it may not', async () => {
  expect(await lint(root, 'src')).toMatchObject({ isClean: true });
});

test.each([
  ['src/domain/a.ts', '../upstream/store.ts'],
  ['src/domain/a.ts', 'node:fs'],
  ['src/transcript/a.ts', '../cache/entry.ts'],
  ['src/transcript/a.ts', 'node:http'],
  ['src/upstream/a.ts', '../cache/entry.ts'],
  ['src/cache/a.ts', '../keys/key.ts'],
  ['src/keys/a.ts', '../quota/quota.ts'],
  ['src/quota/a.ts', '../keys/key.ts'],
  ['src/http/a.ts', '../admin/app.ts'],
  ['src/admin/a.ts', '../http/app.ts'],
  ['src/http/v1/a.ts', '../v2/query.ts'],
  ['src/http/v2/a.ts', '../v1/query.ts'],
  ['src/cache/a.ts', '../gateway.ts'],
  ['src/http/a.ts', '../cli/main.ts'],
  ['src/cache/a.ts', 'ioredis'],
  ['src/http/redis-a.ts', 'ioredis'],
  ['src/keys/a.ts', 'koa'],
  ['src/redis/a.ts', '../cache/entry.ts'],
  ['src/log/a.ts', 'ioredis'],
  ['src/cluster/a.ts', '../config/load.ts'],
  ['src/cluster/a.ts', 'prom-client'],
  ['src/cache/a.ts', '@opentelemetry/api'],
  ['src/http/a.ts', '../tracing/tracing.ts'],
  ['src/tracing/a.ts', 'ioredis'],
])('%s may not import %s', async (file, imported) => {
  const { isClean, output } = await plant(file, imported);
  expect(isClean).toBe(false);
  expect(output).toContain('no-restricted-imports');
});

test.each([
  ['src/http/v1/a.ts', '../../cache/entry.ts'],
  ['src/cache/a.ts', '../upstream/store.ts'],
  ['src/cache/redis-a.ts', 'ioredis'],
  ['src/redis/a.ts', 'ioredis'],
  ['src/tracing/a.ts', '@opentelemetry/api'],
  ['src/tracing/a.ts', '../quota/quota.ts'],
])('%s may import %s', async (file, imported) => {
  expect(await plant(file, imported)).toMatchObject({ isClean: true });
});
