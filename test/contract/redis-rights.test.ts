/** A gateway tries out, when it connects, every command that its scripts send: a user without one of them is found then. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TRIALS } from '../../src/redis/trial.ts';

const SRC = join(import.meta.dirname, '../../src');
/** Commands that a gateway does not need, or sends to a Sentinel. */
const ELSEWHERE = new Set(['SENTINEL']);

function commandsIn(text: string): readonly string[] {
  return [...text.matchAll(/\bcall\('([A-Z]+)'/g)].map(([, name = '']) => name);
}

test('the trial has every command of the scripts, and they are many', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && path !== join('redis', 'trial.ts'),
  );
  const sent = new Set(files.flatMap((path) => commandsIn(readFileSync(join(SRC, path), 'utf8'))));
  const tried = new Set(Object.values(TRIALS).flatMap(({ lua }) => commandsIn(lua)));
  const untried = [...sent].filter((name) => !tried.has(name) && !ELSEWHERE.has(name));
  expect(sent.size).toBeGreaterThan(25);
  expect(untried).toEqual([]);
});
