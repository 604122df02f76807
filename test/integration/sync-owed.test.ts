/** What `evalgate sync` asks for again because the store could not give it, and how often. */
import { expect, test } from 'vitest';
import type { Reply } from '../../src/cli/sync/consumer-api.ts';
import { LocalCopy } from '../../src/cli/sync/copy.ts';
import { Sync } from '../../src/cli/sync/sync.ts';
import { openFolder } from '../support/files.ts';
import { forTest } from '../support/opened.ts';

const MINUTE_MS = 60_000;
const found = (body: object): Reply => ({ kind: 'found', body, next: null, isOld: false });

test('a part that stays damaged is asked for ever more seldom while the feed is followed', async () => {
  const folder = await forTest(openFolder());
  let nowMs = 0;
  const askedAtMinutes: number[] = [];
  const api = {
    get: async (path: string): Promise<Reply> => {
      if (path.startsWith('/v2/changes')) {
        return found({ changes: [], cursor: 'c', has_more: false, unannounced: false });
      }
      if (path.startsWith('/v2/calls?')) return found({ calls: [{ id: 'ev_1' }], pagination: { total_count: 1 } });
      askedAtMinutes.push(nowMs / MINUTE_MS);
      return { kind: 'unreadable' };
    },
  };
  const copy = await forTest(LocalCopy.open(folder.path, 'http://gateway', ['transcript'], () => nowMs));
  const sync = new Sync({ api, copy, onProgress: () => {} });
  for (; nowMs <= 200 * MINUTE_MS; nowMs += MINUTE_MS / 4) expect(await sync.run()).toBe(true);
  expect(askedAtMinutes).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
  expect(sync.counts.unreadable).toBe(1);
});
