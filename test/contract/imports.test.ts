/** Imports point inward: `npm run lint:imports` holds it, and this file that the rules see what they are for. */
import { globSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cruiseSource, drawFolders, PICTURE, ROOT } from '../support/imports.ts';

type Cruise = Awaited<ReturnType<typeof cruiseSource>>;

interface Plant {
  readonly file: string;
  readonly text: string;
  /** The names of the rules that it breaks. */
  readonly rules: readonly string[];
}

const PLANTS: Readonly<Record<string, Plant>> = {
  'a type from a floor above': {
    file: 'src/domain/planted-type.ts',
    text: "import type { Config } from '../config/config.ts';",
    rules: ['domain, log, server, version.ts: only floors below'],
  },
  'a re-exported type from a floor above': {
    file: 'src/cache/planted-export.ts',
    text: "export type { Explained } from '../operations/answers.ts';",
    rules: ['cache: only floors below'],
  },
  'a dynamic import from a floor above': {
    file: 'src/cache/planted-dynamic.ts',
    text: "export const later = () => import('../telemetry/metrics.ts');",
    rules: ['cache: only floors below'],
  },
  'a neighbour on the same floor': {
    file: 'src/keys/planted.ts',
    text: "import { AdaptiveGuard } from '../upstream/guard.ts';",
    rules: ['upstream, config, keys, quota: only floors below'],
  },
  "Node's HTTP as a module in a command, which loads its fetch too": {
    file: 'src/cli/planted-http.ts',
    text: "import { get } from 'node:http';\nexport const planted = get;",
    rules: ['node:http in a command: only by cli/node-http.ts, which says why'],
  },
  'a circle of types': {
    file: 'src/time/planted-one.ts',
    text: "import type { Two } from './planted-two.ts';",
    rules: ['no circles'],
  },
  'a folder without a floor': {
    file: 'src/time/planted-folder.ts',
    text: "import { planted } from '../planted/index.ts';",
    rules: ['each folder has a floor'],
  },
  'a library outside its rooms': {
    file: 'src/cache/planted-library.ts',
    text: "import type Koa from 'koa';",
    rules: ['koa|koa-compose: only ^src/(http|admin)/'],
  },
  'I/O in the domain': {
    file: 'src/domain/planted-io.ts',
    text: "import { readFile } from 'node:fs/promises';",
    rules: ['domain and transcript do no I/O'],
  },
  'a type in a comment of the dashboard': {
    file: 'src/admin/dashboard/page/planted.js',
    text: "/** @type {import('../../../cli/main.ts')} */\nexport const type = null;",
    rules: [],
  },
};

const cruise = await cruiseSource(ROOT);

test('every module of src is read, and none breaks a rule', () => {
  const read = cruise.modules.map((module) => module.source).filter((source) => source.startsWith('src/'));
  expect(read.toSorted()).toEqual(globSync('src/**/*.{ts,js}', { cwd: ROOT }).toSorted());
  expect(cruise.summary.violations).toEqual([]);
});

test('the picture shows the folders as they are; `npm run draw:imports` draws it anew', async () => {
  const picture = await readFile(PICTURE, 'utf8');
  expect(titlesIn(picture)).toEqual(titlesIn(await drawFolders()));
});

test('docs/architecture.md says what each folder is for', async () => {
  const document = await readFile(join(ROOT, 'docs/architecture.md'), 'utf8');
  const folders = globSync('src/*/', { cwd: ROOT }).map((path) => path.split('/')[1]);
  expect(
    folders.filter((folder) => !document.includes(`| \`${folder}\``) && !document.includes(`; \`${folder}\``)),
  ).toEqual([]);
});

/** The names of the boxes and arrows, such as `src/cache->src/upstream`. */
function titlesIn(picture: string): readonly string[] {
  return [...picture.matchAll(/<title>(src\/.*?)<\/title>/g)].map(([, title = '']) => title).toSorted();
}

describe('a copy with planted faults', () => {
  let folder: string;
  let planted: Cruise;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'evalgate-imports-'));
    for (const name of ['src', 'package.json', '.dependency-cruiser.mjs']) {
      await cp(join(ROOT, name), join(folder, name), { recursive: true });
    }
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    await cp(join(ROOT, 'src/version.ts'), join(folder, 'src/planted/index.ts'));
    await writeFile(join(folder, 'src/time/planted-two.ts'), "import type { One } from './planted-one.ts';\n");
    for (const { file, text } of Object.values(PLANTS)) await writeFile(join(folder, file), `${text}\n`);
    planted = await cruiseSource(folder);
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  test.each(Object.entries(PLANTS))('%s', (_name, { file, rules }) => {
    const found = planted.summary.violations.filter(({ from }) => from === file);
    expect(found.map(({ rule }) => rule.name)).toEqual(rules);
  });
});
