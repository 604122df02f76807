import { expect, test } from 'vitest';
import type { CacheTier } from '../../../src/cache/ports.ts';
import type { StoredEntry } from '../../../src/cache/stored.ts';
import { aStoredAbsence, aStoredEvaluation, keyOfEvaluation } from '../../support/stored-entry.ts';

/** All that is to come back of an entry; what was derived from it stays in the process. */
function viewOf(stored: StoredEntry | undefined): unknown {
  return stored && { ...stored, entry: { answer: stored.entry.answer, filledAtMs: stored.entry.filledAtMs } };
}

/** What every tier does. `create` gives an empty one; it clears up after itself when the test is over. */
export function cacheTierContract(create: () => CacheTier | Promise<CacheTier>): void {
  const key = keyOfEvaluation('ev_1');

  test('what was set is got, whole', async () => {
    const tier = await create();
    const stored = aStoredEvaluation(Date.now());
    expect(await tier.set(key, stored)).toBe(true);
    expect(viewOf(await tier.get(key))).toEqual(viewOf(stored));
  });

  test('there is nothing where nothing was set', async () => {
    const tier = await create();
    await tier.set(key, aStoredEvaluation(Date.now()));
    expect(await tier.get(keyOfEvaluation('ev_2'))).toBeUndefined();
  });

  test('that something is absent is an entry too', async () => {
    const tier = await create();
    const stored = aStoredAbsence(Date.now());
    await tier.set(key, stored);
    expect(viewOf(await tier.get(key))).toEqual(viewOf(stored));
  });

  test('a second set replaces the first', async () => {
    const tier = await create();
    const stored = aStoredEvaluation(Date.now(), { title: 'Second' });
    await tier.set(key, aStoredEvaluation(Date.now()));
    await tier.set(key, stored);
    expect(viewOf(await tier.get(key))).toEqual(viewOf(stored));
  });

  test('what was deleted is not there, and deleting nothing is no fault', async () => {
    const tier = await create();
    await tier.set(key, aStoredEvaluation(Date.now()));
    await tier.delete(key);
    await tier.delete(key);
    expect(await tier.get(key)).toBeUndefined();
  });

  test('seeds are set where there is nothing, and where the fetch was over before theirs began', async () => {
    const tier = await create();
    const nowMs = Date.now();
    await tier.set(key, aStoredEvaluation(nowMs));
    const replacing = aStoredEvaluation(nowMs + 51, { title: 'Seed' });
    const fresh = aStoredEvaluation(nowMs + 51, { id: 'ev_2' });
    await tier.seed([
      { key, stored: replacing },
      { key: keyOfEvaluation('ev_2'), stored: fresh },
    ]);
    expect(viewOf(await tier.get(key))).toEqual(viewOf(replacing));
    expect(viewOf(await tier.get(keyOfEvaluation('ev_2')))).toEqual(viewOf(fresh));
  });

  test('a seed does not replace what was still being fetched when its own fetch began', async () => {
    const tier = await create();
    const nowMs = Date.now();
    const held = aStoredEvaluation(nowMs);
    await tier.set(key, held);
    await tier.seed([{ key, stored: aStoredEvaluation(nowMs + 50, { title: 'Seed' }) }]);
    expect(viewOf(await tier.get(key))).toEqual(viewOf(held));
  });

  test('it measures the entries that match, and nothing else', async () => {
    const tier = await create();
    await tier.set(key, aStoredEvaluation(Date.now()));
    await tier.set(keyOfEvaluation('ev_2'), aStoredAbsence(Date.now(), 'ev_2'));
    const all = await tier.measure(() => true);
    const absent = await tier.measure(({ tags }) => tags.includes('class:notFound'));
    expect(all.entries).toBe(2);
    expect(absent.entries).toBe(1);
    expect(absent.bytes).toBeGreaterThan(0);
    expect(all.bytes).toBeGreaterThan(absent.bytes);
    expect(await tier.measure(({ position }) => position.sequence !== 3)).toEqual({ entries: 0, bytes: 0 });
  });
}
