import { expect, test } from 'vitest';
import { TopLoads, topOf } from '../../../src/operations/stats/top-loads.ts';

const REPORT = { class: 'evaluation', route: null, keyId: null, workspaceId: null, durationMs: 0 } as const;

test('of far more keys than are counted the heavy ones are shown, with all of their calls', () => {
  const loads = new TopLoads();
  const heavy = ['heavy-a', 'heavy-b', 'heavy-c'];
  // Three keys that carry a tenth of the calls, among 3,000 that come once.
  for (let round = 0; round < 100; round += 1) {
    const once = Array.from({ length: 30 }, (_, index) => `once-${round}-${index}`);
    for (const key of [...once, ...heavy]) loads.add({ ...REPORT, key });
  }
  const { keys } = topOf([loads.toJSON()], 100);
  const shown = keys.slice(0, 3).toSorted((a, b) => (a.key < b.key ? -1 : 1));
  expect(shown).toMatchObject(heavy.map((key) => ({ key, storeCalls: 100 })));
  expect(keys).toHaveLength(100);
});
