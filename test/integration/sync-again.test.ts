/** How often `evalgate sync` asks again for what it did not get. */
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { ConsumerApi, type Reply } from '../../src/cli/sync/consumer-api.ts';
import { LocalCopy } from '../../src/cli/sync/copy.ts';
import { Sync } from '../../src/cli/sync/sync.ts';
import { openFolder } from '../support/files.ts';
import { listenOnLoopback } from '../support/loopback.ts';
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

test('a limit without an end, such as that of a proxy, is waited for longer each time', async () => {
  const limiting = createServer((_request, response) => response.writeHead(429).end());
  const { url } = await forTest(listenOnLoopback(limiting));
  const [stopping, delays] = [new AbortController(), [] as number[]];
  const onWait = (_reason: string, delayMs: number): void => {
    delays.push(delayMs);
    if (delays.length === 2) stopping.abort();
  };
  const api = new ConsumerApi({ url, key: 'evg_none', signal: stopping.signal, onWait });
  await expect(api.get('/v2/key')).rejects.toThrow('aborted');
  expect(delays).toEqual([500, 1000]);
});
