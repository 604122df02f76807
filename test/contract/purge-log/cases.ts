import { expect, test } from 'vitest';
import type { PurgeLog } from '../../../src/cache/purge-log.ts';

export interface PurgeLogWorld {
  /** The log as two processes see it; one and the same where there is only one process. */
  readonly one: PurgeLog;
  readonly two: PurgeLog;
  /** Until every process has heard of what was purged. */
  readonly heard: () => Promise<void>;
}

/** What every purge log does. `create` gives an empty one that clears up after itself. */
export function purgeLogContract(create: () => PurgeLogWorld | Promise<PurgeLogWorld>): void {
  test('nothing has been purged since now', async () => {
    const { one } = await create();
    expect(one.since(one.position(), ['all', 'class:list'])).toBeNull();
  });

  test('a purge is known here once it has resolved, and elsewhere soon after', async () => {
    const { one, two, heard } = await create();
    const [before, beforeElsewhere] = [one.position(), two.position()];
    await one.purge(['evaluation:a', 'lists-of:w'], 'hard');
    expect(one.since(before, ['all', 'evaluation:a'])).toBe('hard');
    await heard();
    expect(two.since(beforeElsewhere, ['lists-of:w'])).toBe('hard');
  });

  test('it befalls what has one of its tags, and nothing else', async () => {
    const { one } = await create();
    const before = one.position();
    await one.purge(['evaluation:a'], 'hard');
    expect(one.since(before, ['all', 'class:evaluation', 'evaluation:b'])).toBeNull();
    expect(one.since(before, [])).toBeNull();
  });

  test('it befalls what was filled before it, and not what was filled after', async () => {
    const { one, two, heard } = await create();
    await one.purge(['all'], 'hard');
    await heard();
    const after = two.position();
    expect(two.since(after, ['all'])).toBeNull();
    expect(one.since(after, ['all'])).toBeNull();
    await two.purge(['all'], 'hard');
    expect(two.since(after, ['all'])).toBe('hard');
  });

  test('a soft purge is soft, and a hard one rules over it whichever came first', async () => {
    const { one } = await create();
    const before = one.position();
    await one.purge(['class:list'], 'soft');
    expect(one.since(before, ['class:list'])).toBe('soft');
    await one.purge(['class:list'], 'hard');
    await one.purge(['class:list'], 'soft');
    expect(one.since(before, ['class:list'])).toBe('hard');
  });

  test('what was filled in another history counts as purged', async () => {
    const { one } = await create();
    expect(one.since({ ...one.position(), history: 'another' }, ['class:list'])).toBe('hard');
  });
}
