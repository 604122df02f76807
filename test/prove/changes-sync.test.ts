/**
 * `evalgate sync` by the feed, beside edits, creations and deletions: how soon its copy is the store's, and at what cost; the same
 * if it is killed meanwhile. And a walk through a list that changes. PROVE_CHANGES makes it fewer changes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { z } from 'zod';
import { type ChangingOptions, ChangingSample } from '../support/changing-sample.ts';
import { openFolder } from '../support/files.ts';
import { forTest } from '../support/opened.ts';
import { PROGRAM } from '../support/process.ts';
import { SeededRandom } from '../support/random.ts';
import { count, ms, prove } from './bar.ts';

const CHANGES = Number(process.env['PROVE_CHANGES'] ?? 1000);
const WITHIN_MS = 5000;
const LOOK_EVERY_MS = 50;
const GIVE_UP_MS = 60_000;
const KILLS = 20;
/** The shortest that is allowed. */
const KEEP_MS = 60_000;
const [ADDED, REMOVED] = [200, 50];
const listSchema = z.object({ calls: z.array(z.object({ id: z.string() })) });
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

/** A copy that `evalgate sync` keeps of a changing store. */
class Copy {
  readonly #world: ChangingSample;
  readonly #folder: string;
  #child: ChildProcess | null = null;

  constructor(world: ChangingSample, folder: string) {
    this.#world = world;
    this.#folder = folder;
  }

  start(): void {
    const args = [PROGRAM, 'sync', this.#folder, '--url', this.#world.gateway(0).publicUrl];
    const env = { ...process.env, EVALGATE_API_KEY: this.#world.key };
    this.#child = spawn(process.execPath, args, { env, stdio: 'ignore' });
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null) return;
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }

  close(): Promise<void> {
    return this.end('SIGKILL');
  }

  isTheStores(): boolean {
    const copied = titlesIn(join(this.#folder, 'calls.jsonl'));
    const stored = this.#world.titles();
    return copied.size === stored.size && [...stored].every(([id, title]) => copied.get(id) === title);
  }

  /** Resolves with how long after now the copy was the store's. */
  async untilTheStores(): Promise<number> {
    const sinceMs = performance.now();
    while (!this.isTheStores()) {
      if (performance.now() - sinceMs > GIVE_UP_MS) throw new Error('The copy is not the store.');
      await sleep(LOOK_EVERY_MS);
    }
    return performance.now() - sinceMs;
  }
}

/** A copy that is the store's, and whose place in the feed is taken. */
async function startCopy(more: Pick<ChangingOptions, 'configFile'> = {}) {
  const world = await forTest(ChangingSample.start({ gateways: 2, evaluations: 300, latencyMs: 20, ...more }));
  const folder = await forTest(openFolder());
  const copy = new Copy(world, folder.path);
  await forTest(copy);
  copy.start();
  await copy.untilTheStores();
  // It asks the feed once more after its walk.
  await sleep(WITHIN_MS);
  return { world, copy };
}

/** Each is announced at once: one in ten deletes a call, one in ten creates one, the others edit one. */
async function makeChanges(world: ChangingSample, changes: number, first = 0): Promise<void> {
  const random = new SeededRandom(5);
  for (let number = first; number < first + changes; number += 1) {
    const ids = [...world.titles().keys()];
    const id = ids[random.integer(0, ids.length - 1)] ?? '';
    const dice = random.integer(0, 9);
    if (dice === 0) await world.announce([world.remove(id)], number);
    else if (dice === 1) await world.announce([world.create(id, `ev_new_${number}`)], number);
    else await world.announce([world.edit(id, `Edit ${number}`)], number);
  }
}

test('a copy beside changes', async (context) => {
  const { world, copy } = await startCopy();
  const [before, listsBefore] = [world.storeCalls, world.listCalls];
  await makeChanges(world, CHANGES);
  const tookMs = await copy.untilTheStores();
  const [calls, lists] = [world.storeCalls - before, world.listCalls - listsBefore];
  prove(context, {
    name: 'sync by the feed',
    bar: `beside ${count(CHANGES)} edits, creations and deletions: the copy is the store's within 5,000 ms of the last, at most one call per change, no list`,
    measured: `${ms(tookMs)}, ${count(calls)} calls, ${count(lists)} of lists`,
    ok: tookMs <= WITHIN_MS && calls <= CHANGES && lists === 0,
  });
});

test('a copy beside changes, killed again and again', async (context) => {
  const { world, copy } = await startCopy();
  const [before, listsBefore] = [world.storeCalls, world.listCalls];
  const random = new SeededRandom(7);
  const changed = makeChanges(world, CHANGES).then(() => true);
  let kills = 0;
  for (; kills < KILLS || !(await Promise.race([changed, Promise.resolve(false)])); kills += 1) {
    await sleep(random.integer(300, 1500));
    await copy.end('SIGKILL');
    copy.start();
  }
  const tookMs = await copy.untilTheStores();
  const [calls, lists] = [world.storeCalls - before, world.listCalls - listsBefore];
  prove(context, {
    name: 'sync by the feed, killed',
    bar: `the same, with kill -9 at ${KILLS} random points or more`,
    measured: `killed ${kills} times; ${ms(tookMs)} after the last change, ${count(calls)} calls, ${count(lists)} of lists`,
    ok: kills >= KILLS && tookMs <= WITHIN_MS && calls <= CHANGES && lists === 0,
  });
});

test('a copy whose place in the feed has expired', async (context) => {
  const settings = await forTest(openFolder());
  const configFile = join(settings.path, 'evalgate.yaml');
  writeFileSync(configFile, `changes: { keep: ${KEEP_MS / 1000}s }\n`);
  const { world, copy } = await startCopy({ configFile });
  const firstWalk = world.listCalls;
  const seen: { readonly when: string; readonly tookMs: number; readonly lists: number }[] = [];
  /** Changes the store while the copy is not kept, and goes on with it. */
  const pause = async (when: string, change: () => Promise<unknown>): Promise<void> => {
    await copy.end('SIGTERM');
    await change();
    const before = world.listCalls;
    copy.start();
    const tookMs = await copy.untilTheStores();
    // It asks the feed once more after its walk.
    await sleep(WITHIN_MS);
    seen.push({ when, tookMs, lists: world.listCalls - before });
  };
  await pause('a pause beyond changes.keep', async () => {
    const over = sleep(KEEP_MS + 1000);
    await makeChanges(world, CHANGES);
    await over;
    // Events that are over are removed by the next.
    await makeChanges(world, 1, CHANGES);
  });
  await pause('Redis was emptied', async () => {
    await world.emptyRedis();
    await makeChanges(world, CHANGES, CHANGES + 1);
  });
  prove(context, {
    name: 'sync by the feed, expired',
    bar: `${count(CHANGES)} changes during a pause beyond changes.keep, and after Redis was emptied: the copy is the store's within 5,000 ms of its start, with one walk`,
    measured: [
      `the first walk: ${count(firstWalk)} lists`,
      ...seen.map(({ when, tookMs, lists }) => `${when}: ${ms(tookMs)}, ${count(lists)} lists`),
    ].join('; '),
    ok: seen.every(({ tookMs, lists }) => tookMs <= WITHIN_MS && lists >= 1 && lists <= firstWalk + 1),
  });
});

test('a walk beside additions and removals', async (context) => {
  const options = { gateways: 2, evaluations: 2000, latencyMs: 20, hasFeed: false };
  const world = await forTest(ChangingSample.start(options));
  const random = new SeededRandom(9);
  const atStart = [...world.titles().keys()];
  const removed = new Set<string>();
  const seen = new Map<string, number>();
  let [pages, added] = [0, 0];
  let path: string | null = '/v2/calls?after=&pageSize=100';
  while (path !== null) {
    const response: Response = await world.gateway(pages).get(path, world.key);
    const { calls } = listSchema.parse(await response.json());
    for (const { id } of calls) seen.set(id, (seen.get(id) ?? 0) + 1);
    const next = /<([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
    path = next === undefined ? null : `/v2/calls${next}`;
    pages += 1;
    for (let index = 0; index < 20 && added < ADDED; index += 1, added += 1) {
      const from = atStart[random.integer(0, atStart.length - 1)] ?? '';
      // Above the walk, or anywhere.
      const about = index % 2 === 0 ? { createdAtMs: Date.now() + added } : {};
      if (!removed.has(from)) world.create(from, `ev_new_${added}`, about);
    }
    for (let index = 0; index < 5 && removed.size < REMOVED; index += 1) {
      const id = atStart[random.integer(0, atStart.length - 1)] ?? '';
      if (!removed.has(id)) world.remove(id);
      removed.add(id);
    }
  }
  const lost = atStart.filter((id) => !removed.has(id) && !seen.has(id));
  const doubled = [...seen.values()].filter((times) => times > 1);
  prove(context, {
    name: 'walk with after=',
    bar: `${count(atStart.length)} calls, while ${ADDED} are added and ${REMOVED} removed: none lost, none doubled`,
    measured: `${pages} pages, ${added} added, ${removed.size} removed: ${lost.length} lost, ${doubled.length} doubled`,
    ok: added === ADDED && removed.size === REMOVED && lost.length === 0 && doubled.length === 0,
  });
});
