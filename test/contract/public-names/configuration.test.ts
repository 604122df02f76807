/** Environment variables, and the settings of the file with their defaults. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { parse } from 'yaml';
import { z } from 'zod';
import { startTestGateway } from '../../support/gateway.ts';
import { OTEL_VARIABLES, VARIABLES } from '../../unit/config/variables.ts';
import { expectPinned } from './pin.ts';

const SHIPPED = fileURLToPath(new URL('../../../config/default.yaml', import.meta.url));
const settingSchema = z.object({ value: z.unknown(), origin: z.string(), from: z.string().nullable() });

const shipped = await readFile(SHIPPED, 'utf8');
const gateway = await forFile(startTestGateway({ env: { CONFIG_FILE: SHIPPED } }));

/** The value at each path of a tree; `isLeaf` decides which values are leaves. */
function leaves(
  tree: unknown,
  isLeaf: (value: unknown) => boolean,
  path = '',
): readonly (readonly [string, unknown])[] {
  if (isLeaf(tree)) return [[path, tree]];
  return Object.entries(z.record(z.string(), z.unknown()).parse(tree)).flatMap(([name, inner]) =>
    leaves(inner, isLeaf, path === '' ? name : `${path}.${name}`),
  );
}

const isValue = (value: unknown): boolean => typeof value !== 'object' || value === null || Array.isArray(value);
const isSetting = (value: unknown): boolean => settingSchema.safeParse(value).success;

test('the file that comes with the program holds every setting with its default; they are as pinned', async () => {
  const { json } = await gateway.admin('GET', '/api/config');
  const { settings } = z.object({ settings: z.unknown() }).parse(json);
  const inForce = leaves(settings, isSetting).map(([key, setting]) => [key, settingSchema.parse(setting)] as const);
  const written = new Map(leaves(parse(shipped), isValue));
  expect(inForce.map(([key]) => key)).toEqual([...written.keys()]);
  // The test gateway's settings come from its environment; all others have the default, which the file repeats.
  const changed = inForce.filter(([, { origin }]) => origin !== 'default').map(([key]) => key);
  expect(changed).toEqual(['server.port', 'admin.port', 'upstream.url', 'upstream.token']);
  const defaults = inForce.filter(([, { origin }]) => origin === 'default');
  expect(defaults.map(([key, { value }]) => [key, value])).toEqual(defaults.map(([key]) => [key, written.get(key)]));
  await expectPinned(
    'configuration.txt',
    [...written].map(([key, value]) => `${key}: ${JSON.stringify(value)}`),
  );
});

test('each setting is explained right above it, with the variables that override it', () => {
  const keys = [...leaves(parse(shipped), isValue)].map(([key]) => key);
  const comments = new Map(keys.map((key) => [key, commentAbove(key.split('.'))]));
  expect([...comments].filter(([, comment]) => comment.length < 40)).toEqual([]);
  const named = [...comments].flatMap(([key, comment]) =>
    [...(/\[([A-Z_, ]+)\]\s*$/.exec(comment)?.[1] ?? '').matchAll(/[A-Z_]+/g)].map(([name]) => `${name} ${key}`),
  );
  const expected = VARIABLES.flatMap(({ name, key, isSecret }) =>
    isSecret ? [`${name} ${key}`, `${name}_FILE ${key}`] : [`${name} ${key}`],
  );
  expect(named.toSorted()).toEqual(expected.toSorted());
});

function commentAbove(path: readonly string[]): string {
  const lines = shipped.split('\n');
  let from = 0;
  for (const [depth, name] of path.entries()) {
    from = lines.findIndex((line, index) => index >= from && line.startsWith(`${'  '.repeat(depth)}${name}:`));
  }
  const above = lines.slice(0, from);
  const start = above.findLastIndex((line) => !line.trim().startsWith('#')) + 1;
  return above
    .slice(start)
    .join(' ')
    .replaceAll(/\s*#\s*/g, ' ');
}

test('environment variables are as pinned, and each is refused or taken as test/unit/config has it', async () => {
  await expectPinned('environment.txt', [
    'CONFIG_FILE',
    ...VARIABLES.flatMap(({ name, key, isSecret }) => [
      `${name}: ${key}`,
      ...(isSecret ? [`${name}_FILE: ${key}`] : []),
    ]),
    ...OTEL_VARIABLES,
  ]);
});
