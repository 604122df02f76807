/** The messages by which processes learn that calls of others have ended, those of the release before included. */
import { expect, test } from 'vitest';
import { FlightChannel } from '../../../src/cache/redis/flight-channel.ts';
import type { Replacement } from '../../../src/cache/memory-tier.ts';
import { CacheNames } from '../../../src/redis/names.ts';
import { FakeTime } from '../../support/flight-world.ts';

const SELF = 'this process';
const AUDIENCE = '11111111-1111-4111-8111-111111111111';
const ABOUT = { sender: 'another', key: 'a key', audience: AUDIENCE };

/** A channel, what it drops from memory, and how often a follower of the audience is woken. */
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
      deleteOlder: (key: string, { filledAtMs, workspaceId }: Replacement) =>
        void dropped.push([key, filledAtMs, workspaceId]),
    },
  });
  const following = channel.follow('a key', AUDIENCE);
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

test.each(['stored', 'released'])('the end of a call for its audience wakes a follower: %s', async (end) => {
  const { receive, woken } = await createChannel();
  await receive({ end, ...ABOUT, filledAtMs: 7, workspaceId: AUDIENCE });
  expect(woken()).toBe(1);
});

test('K7a: the ends of calls for other audiences, and of other keys, wake nobody', async () => {
  const { receive, woken } = await createChannel();
  await receive({ end: 'stored', ...ABOUT, audience: `refresh-${AUDIENCE}`, filledAtMs: 7 });
  await receive({ end: 'released', ...ABOUT, key: 'another key' });
  expect(woken()).toBe(0);
});

test('what is stored drops older copies, and says whose record it is; a foreign answer drops none', async () => {
  const { receive, dropped } = await createChannel();
  await receive({ end: 'stored', ...ABOUT, filledAtMs: 7, workspaceId: AUDIENCE });
  await receive({ end: 'stored', ...ABOUT, filledAtMs: 0, workspaceId: null });
  await receive({ end: 'released', ...ABOUT });
  await receive({ end: 'stored', ...ABOUT, sender: SELF, filledAtMs: 8 });
  expect(dropped).toEqual([
    ['a key', 7, AUDIENCE],
    ['a key', 0, null],
  ]);
});

test('0.2 names no audience: what it stores drops older copies, and its failures say nothing here', async () => {
  const { receive, dropped, woken } = await createChannel();
  await receive({ end: 'stored', sender: 'another', key: 'a key', filledAtMs: 7 });
  const failure = { kind: 'timeout', message: '', retryAfterMs: null, status: null };
  await receive({ end: 'failed', sender: 'another', key: 'a key', failure, workspaceSet: AUDIENCE, tookMs: 1 });
  await receive('no JSON');
  expect([dropped, woken()]).toEqual([[['a key', 7, null]], 0]);
});

test('a follower that was not woken looks after its time, and one that is closed is not woken', async () => {
  const { receive, following, time, woken } = await createChannel();
  await time.advance(60_000);
  expect(woken()).toBe(1);
  following.close();
  await receive({ end: 'released', ...ABOUT });
  expect(woken()).toBe(1);
});

test('an end that comes before the follower waits is not missed', async () => {
  const { channel, receive, time } = await createChannel();
  const late = channel.follow('a key', AUDIENCE);
  await receive({ end: 'released', ...ABOUT });
  let isWoken = false;
  void late.next(60_000).then(() => (isWoken = true));
  await time.advance(0);
  expect(isWoken).toBe(true);
});
