import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadAndKeep, loadKept } from '../../../src/config/kept-files.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'evalgate-kept-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('what was kept loads the same, whatever has become of the files', async () => {
  const env = {
    CONFIG_FILE: join(folder, 'my.yaml'),
    UPSTREAM_URL: 'http://a',
    UPSTREAM_TOKEN_FILE: join(folder, 'token'),
  };
  await writeFile(env.CONFIG_FILE, 'rateLimit: {perMinute: 7}');
  await writeFile(env.UPSTREAM_TOKEN_FILE, 'first');
  const { loaded, files } = loadAndKeep(env);
  await writeFile(env.CONFIG_FILE, 'rateLimit: {perMinute: none}');
  await rm(env.UPSTREAM_TOKEN_FILE);
  expect(loadKept(env, files).config).toEqual(loaded.config);
  expect(loaded.config).toMatchObject({ rateLimit: { perMinute: 7 }, upstream: { token: 'first' } });
  expect(() => loadAndKeep(env)).toThrow('perMinute');
});
