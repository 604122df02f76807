/** `evalgate sync` by the feed, beside edits, creations and deletions: how soon its copy is the store's, and at what cost. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { z } from 'zod';
import { ChangingSample } from '../support/changing-sample.ts';
import { openFolder } from '../support/files.ts';
import { forTest } from '../support/opened.ts';
import { PROGRAM } from '../support/process.ts';
import { SeededRandom } from '../support/random.ts';
import { count, ms, prove } from './bar.ts';

const CHANGES = Number(process.env['PROVE_CHANGES'] ?? 1000);
const WITHIN_MS = 5000;
const LOOK_EVERY_MS = 50;
const GIVE_UP_MS = 60_000;
const lineSchema = z.object({ id: z.string(), name: z.string().optional(), deleted: z.boolean().optional() });

/** The titles of the copy, by id. */
function titlesIn(path: string): ReadonlyMap<string, string> {
  const lines = existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line.endsWith('}'))
    : [];
  const last = new Map(lines.map((line) => lineSchema.parse(JSON.parse(line))).map((line) => [line.id, line]));
  return new Map([...last].flatMap(([id, { name, deleted }]) => (deleted === true ? [] : [[id, name ?? '']])));
}

test('a copy beside changes', async (context) => {
  const world = await forTest(ChangingSample.start({ gateways: 2, evaluations: 300, latencyMs: 20 }));
  const folder = await forTest(openFolder());
  const path = join(folder.path, 'calls.jsonl');
  const child = spawn(process.execPath, [PROGRAM, 'sync', folder.path, '--url', world.gateway(0).publicUrl], {
    env: { ...process.env, EVALGATE_API_KEY: world.key },
    stdio: 'ignore',
  });
  const isSame = (): boolean => {
    const copied = titlesIn(path);
    const stored = world.titles();
    return copied.size === stored.size && [...stored].every(([id, title]) => copied.get(id) === title);
  };
  /** How long after that moment the copy was the store's. */
  const untilSame = async (sinceMs: number): Promise<number> => {
    while (!isSame()) {
      if (performance.now() - sinceMs > GIVE_UP_MS) throw new Error('The copy is not the store.');
      await sleep(LOOK_EVERY_MS);
    }
    return performance.now() - sinceMs;
  };
  try {
    await untilSame(performance.now());
    // Its place in the feed is there once it has asked the feed after its walk.
    await sleep(WITHIN_MS);
    const random = new SeededRandom(5);
    const [before, listsBefore] = [world.storeCalls, world.listCalls];
    for (let number = 0; number < CHANGES; number += 1) {
      const ids = [...world.titles().keys()];
      const id = ids[random.integer(0, ids.length - 1)] ?? '';
      const dice = random.integer(0, 9);
      if (dice === 0) await world.announce([world.remove(id)], number);
      else if (dice === 1) await world.announce([world.create(id, `ev_new_${number}`)], number);
      else await world.announce([world.edit(id, `Edit ${number}`)], number);
    }
    const tookMs = await untilSame(performance.now());
    const [calls, lists] = [world.storeCalls - before, world.listCalls - listsBefore];
    prove(context, {
      name: 'sync by the feed',
      bar: `beside ${count(CHANGES)} edits, creations and deletions: the copy is the store's within 5,000 ms of the last, at most one call per change, no list`,
      measured: `${ms(tookMs)}, ${count(calls)} calls, ${count(lists)} of lists`,
      ok: tookMs <= WITHIN_MS && calls <= CHANGES && lists === 0,
    });
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
});
