/** The messages by which processes learn that calls of others have ended. */
import { expect, test } from 'vitest';
import { FlightChannel } from '../../../src/cache/redis/flight-channel.ts';
import type { Address } from '../../../src/cache/address.ts';
import { CacheNames } from '../../../src/redis/names.ts';
import { FakeTime } from '../../support/flight-world.ts';

const SELF = 'this process';
const SET = '11111111-1111-4111-8111-111111111111';
const ABOUT = { sender: 'another', key: 'a key', set: SET };
const FILED = { owner: SET, requestedAtMs: 7 };

/** A channel, what it drops from memory, and how often a follower of the set is woken. */
async function createChannel() {
  let publish: ((text: string) => void) | undefined;
  const dropped: unknown[] = [];
  const time = new FakeTime();
  const channel = new FlightChannel({
    cache: {
      db: 0,
      subscriber: {
        listen: (_name, listener) => {
          publish = listener;
          return () => {};
        },
      },
    },
    names: new CacheNames('store'),
    timers: time,
    self: SELF,
    memory: {
      deleteOlder: ({ key, owner }: Address, requestedAtMs: number) => void dropped.push([key, owner, requestedAtMs]),
      end: (key: string, owners: readonly string[], requestedAtMs: number) => {
        dropped.push(...owners.map((owner) => [key, owner, requestedAtMs]));
        return owners;
      },
    },
  });
  const following = channel.follow('a key', SET);
  let woken = 0;
  const follow = async (): Promise<void> => {
    for (;;) {
      await following.next(60_000);
      woken += 1;
    }
  };
  void follow();
  const receive = async (message: object | string): Promise<void> => {
    publish?.(typeof message === 'string' ? message : JSON.stringify(message));
    await time.advance(0);
  };
  return { channel, following, receive, dropped, time, woken: () => woken };
}

test.each([
  ['a copy was filed', FILED],
  ['none was', null],
])('the end of a call for its set wakes a follower: %s', async (_what, filed) => {
  const { receive, woken } = await createChannel();
  await receive({ ...ABOUT, filed });
  expect(woken()).toBe(1);
});

test('K7a: the ends of calls for other sets, and of other keys, wake nobody', async () => {
  const { receive, woken } = await createChannel();
  await receive({ ...ABOUT, set: 'another', filed: FILED });
  await receive({ ...ABOUT, key: 'another key', filed: null });
  expect(woken()).toBe(0);
});

test('a copy that was filed drops older ones of its owner, unless this process filed it; any other end drops none', async () => {
  const { channel, receive, dropped, woken } = await createChannel();
  await receive({ ...ABOUT, filed: FILED });
  await receive({ ...ABOUT, filed: null });
  await receive(channel.message({ key: 'a key', set: SET, filed: FILED }));
  await receive('no JSON');
  await receive({ end: 'stored', sender: 'another', key: 'a key', filledAtMs: 7 });
  expect([dropped, woken()]).toEqual([[['a key', SET, 7]], 2]);
});

test('C4: copies end in memory that a call has found to be none of their owners', async () => {
  const { receive, dropped } = await createChannel();
  await receive({ ...ABOUT, filed: null, disowned: { owners: ['A', 'B'], requestedAtMs: 8 } });
  expect(dropped).toEqual([
    ['a key', 'A', 8],
    ['a key', 'B', 8],
  ]);
});

test('a follower that was not woken looks after its time, and one that is closed is not woken', async () => {
  const { receive, following, time, woken } = await createChannel();
  await time.advance(60_000);
  expect(woken()).toBe(1);
  following.close();
  await receive({ ...ABOUT, filed: null });
  expect(woken()).toBe(1);
});

test('an end that comes before the follower waits is not missed', async () => {
  const { channel, receive, time } = await createChannel();
  const late = channel.follow('a key', SET);
  await receive({ ...ABOUT, filed: null });
  let isWoken = false;
  void late.next(60_000).then(() => (isWoken = true));
  await time.advance(0);
  expect(isWoken).toBe(true);
});
