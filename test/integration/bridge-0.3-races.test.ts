/** Values that 0.3 writes while 0.4 looks, or that this process has not heard of yet, are not overwritten (bridge-0.3.ts). */
import { afterAll, beforeEach, expect, test } from 'vitest';
import { Bridge03, type BridgeOptions } from '../../src/journal/bridge-0.3.ts';
import { RedisJournal } from '../../src/journal/redis-journal.ts';
import { RedisLink } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/time/clock.ts';
import { systemTimers } from '../../src/time/timers.ts';
import { forFile, forTest } from '../support/opened.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

const HEAD = 'evalgate:{cache}:head';
const TIMES = 'evalgate:{cache}:times';

const redis = await forFile(startRedis());
const raw = await connectWhenUp(redis.url);
afterAll(() => raw.disconnect());
const link = await forFile(new RedisLink({ url: redis.url, role: 'state' }));
await new Promise<void>((resolve) => void link.onUp(resolve));
beforeEach(async () => {
  await redis.flush();
  await raw.hset(HEAD, { history: 'of-0.3', sequence: 0 });
});

function maintenanceBy(by: string): string {
  return JSON.stringify({ sinceMs: 1000, untilMs: 5_000_000_000_000, by });
}

async function openJournal(): Promise<RedisJournal> {
  const journal = await forTest(
    new RedisJournal({ link, clock: systemClock, timers: systemTimers, onLost: () => undefined }),
  );
  await journal.catchUp();
  return journal;
}

/** One that looks only when it is asked to. */
function bridgeOver(journal: BridgeOptions['journal']): Promise<Bridge03> {
  const timers = { ...systemTimers, after: () => () => undefined };
  return forTest(
    new Bridge03({ journal, link, isOldThere: () => true, clearCache: async () => {}, clock: systemClock, timers }),
  );
}

/** The same journal for a bridge, without news of it. */
function silent(journal: RedisJournal): BridgeOptions['journal'] {
  return {
    on: () => () => undefined,
    append: (event, also) => journal.append(event, also),
    registers: () => journal.registers(),
    catchUp: () => journal.catchUp(),
  };
}

test('what 0.3 writes between a look and what it is told stays', async () => {
  const journal = await openJournal();
  let isWriting = false;
  const bridge = await bridgeOver({
    ...silent(journal),
    // The look has read what 0.3 has, and nothing is written yet.
    catchUp: async () => {
      if (isWriting) {
        isWriting = false;
        await raw.hset(HEAD, 'maintenance', maintenanceBy('old'));
        await raw.hset(TIMES, 'list.freshMs', '12000');
      }
      await journal.catchUp();
    },
  });
  await bridge.look();
  const times = [{ name: 'freshMs', ms: 45_000, untilMs: null }];
  await journal.append({ kind: 'times', class: 'list', overrides: times });
  await journal.append({ kind: 'times', class: 'rubric', overrides: times });
  isWriting = true;
  for (let looks = 0; looks < 3; looks += 1) await bridge.look();
  expect(await raw.hget(HEAD, 'maintenance')).toBe(maintenanceBy('old'));
  expect(await raw.hgetall(TIMES)).toEqual({ 'list.freshMs': '12000', 'rubric.freshMs': '45000' });
  const registers = journal.registers();
  expect([registers.get('maintenance'), registers.get('times:list')]).toEqual([
    expect.stringContaining('"by":"old"'),
    expect.stringContaining('"ms":12000'),
  ]);
});

test('what another process has taken over from 0.3 is not undone by one that has not heard of it yet', async () => {
  const [here, there] = [await openJournal(), await openJournal()];
  const stale = new Map(there.registers());
  let isBehind = true;
  const first = await bridgeOver(silent(here));
  const second = await bridgeOver({
    ...silent(there),
    registers: () => (isBehind ? stale : there.registers()),
    catchUp: async () => {
      isBehind = false;
      await there.catchUp();
    },
  });
  await raw.hset(HEAD, 'maintenance', maintenanceBy('old'));
  await first.look();
  expect(here.registers().get('maintenance')).toContain('"by":"old"');
  await second.look();
  await second.look();
  expect(await raw.hget(HEAD, 'maintenance')).toBe(maintenanceBy('old'));
});
