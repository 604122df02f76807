/**
 * From an announcement to its event in the feed, and what a consumer reads who sees the event: never what was before it, at any
 * process. PROVE_CHANGES makes it fewer events.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { z } from 'zod';
import { ChangingSample } from '../support/changing-sample.ts';
import { forTest } from '../support/opened.ts';
import { percentile } from '../support/percentile.ts';
import { count, ms, prove } from './bar.ts';

const EVENTS = Number(process.env['PROVE_CHANGES'] ?? 10_000);
const GATEWAYS = 4;
const AT_ONCE = 20;
const READERS = 8;
const POLL_EVERY_MS = 10;
const pageSchema = z.object({
  changes: z.array(z.object({ id: z.string() })),
  cursor: z.string(),
  has_more: z.boolean(),
});

/** The number of the edit that the title shows. */
function numberOf(title: string): number {
  return Number(/^Edit (\d+)$/.exec(title)?.[1] ?? -1);
}

test('events of announced changes', async (context) => {
  const world = await forTest(ChangingSample.start({ gateways: GATEWAYS, evaluations: 120, latencyMs: 20 }));
  const ids = [...world.calls.keys()];
  for (const id of ids) for (const place of world.gateways.keys()) await world.titleAt(place, id);
  const readFeed = async (place: number, query: string) =>
    pageSchema.parse(await (await world.gateway(place).get(`/v2/changes${query}`, world.key)).json());

  /** The edits of each call in their order, with when they were announced; and how many of them were seen in the feed. */
  const edits = new Map(ids.map((id) => [id, [] as { readonly number: number; readonly atMs: number }[]]));
  const seen = new Map<string, number>();
  const delays: number[] = [];
  let [old, isDone, isFollowed] = [0, false, false];

  /** Events that were seen, and are still to be read: of each its call, and the number of its edit. */
  const toRead: { readonly id: string; readonly number: number }[] = [];

  const { cursor: start } = await readFeed(0, '');
  /** Polls all processes in turn. */
  const follow = async (): Promise<void> => {
    let cursor = start;
    for (let poll = 0, isOver = false; !isOver; poll += 1) {
      const wasDone = isDone;
      const page = await readFeed(poll, `?limit=1000&after=${cursor}`);
      ({ cursor } = page);
      const nowMs = performance.now();
      for (const { id } of page.changes) {
        const index = seen.get(id) ?? 0;
        seen.set(id, index + 1);
        const { number, atMs } = edits.get(id)?.[index] ?? { number: Infinity, atMs: nowMs };
        delays.push(nowMs - atMs);
        toRead.push({ id, number });
      }
      isOver = wasDone && page.changes.length === 0;
      await sleep(POLL_EVERY_MS);
    }
    isFollowed = true;
  };
  /** Reads on each event, at all processes in turn. */
  const read = async (): Promise<void> => {
    for (let place = 0; !isFollowed || toRead.length > 0; place += 1) {
      const next = toRead.shift();
      if (next === undefined) await sleep(POLL_EVERY_MS);
      else if (numberOf(await world.titleAt(place, next.id)) < next.number) old += 1;
    }
  };
  const consuming = Promise.all([follow(), ...Array.from({ length: READERS }, read)]);
  for (let number = 0; number < EVENTS; number += AT_ONCE) {
    // As fast as the consumer reads what it sees.
    while (toRead.length > AT_ONCE) await sleep(POLL_EVERY_MS);
    const edited = Array.from({ length: AT_ONCE }, (_, index) =>
      world.edit(ids[(number + index) % ids.length] ?? '', `Edit ${number + index}`),
    );
    for (const [index, { id }] of edited.entries())
      edits.get(id)?.push({ number: number + index, atMs: performance.now() });
    const status = await world.announce(edited, number / AT_ONCE);
    if (status !== 200) throw new Error(`An announcement was answered ${status}.`);
  }
  isDone = true;
  await consuming;
  const slowest = percentile(delays, 0.99);
  prove(
    context,
    {
      name: 'event of a change',
      bar: `${count(EVENTS)} events: each once, p99 at most 1,000 ms after the announcement was sent`,
      measured: `${count(delays.length)} events, p50 ${ms(percentile(delays, 0.5))}, p99 ${ms(slowest)}`,
      ok: delays.length === EVENTS && slowest <= 1000,
    },
    {
      name: 'read on an event',
      bar: 'never older than the change, at any process',
      measured: `${count(old)} old answers`,
      ok: old === 0,
    },
  );
});
