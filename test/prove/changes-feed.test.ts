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

/** Follows the feed at all processes in turn, and reads each call whose event it sees. */
class Consumer {
  /** From the announcement to the event, in milliseconds. */
  readonly delays: number[] = [];
  /** Polls that were answered 500. */
  failed = 0;
  /** Reads on an event that brought what was before it: what they said of themselves. */
  readonly old: string[] = [];
  readonly #world: ChangingSample;
  /** The edits of each call in their order, with when they were announced. */
  readonly #edits = new Map<string, { readonly number: number; readonly atMs: number }[]>();
  /** How many of the edits of each call were seen. */
  readonly #seen = new Map<string, number>();
  readonly #toRead: { readonly id: string; readonly number: number }[] = [];
  #isLastAnnounced = false;
  #isFollowed = false;

  constructor(world: ChangingSample) {
    this.#world = world;
  }

  /** Resolves once the consumer has read all but a few of what it has seen. */
  async untilRead(): Promise<void> {
    while (this.#toRead.length > AT_ONCE) await sleep(POLL_EVERY_MS);
  }

  noteEdit(id: string, number: number): void {
    this.#edits.set(id, [...(this.#edits.get(id) ?? []), { number, atMs: performance.now() }]);
  }

  noteLast(): void {
    this.#isLastAnnounced = true;
  }

  async feed(place: number, query: string): Promise<z.output<typeof pageSchema>> {
    for (;;) {
      const response = await this.#world.gateway(place).get(`/v2/changes${query}`, this.#world.key);
      if (response.status === 200) return pageSchema.parse(await response.json());
      // Redis did not answer in time: that is to be asked again, and nothing else is.
      if (response.status !== 500) throw new Error(`The feed answered ${response.status}: ${await response.text()}`);
      this.failed += 1;
      await sleep(POLL_EVERY_MS);
    }
  }

  /** Resolves when there is no event left. */
  async consume(cursor: string): Promise<void> {
    await Promise.all([this.#follow(cursor), ...Array.from({ length: READERS }, () => this.#read())]);
  }

  async #follow(start: string): Promise<void> {
    for (let [cursor, place] = [start, 0]; !this.#isFollowed; place += 1) {
      const wasLast = this.#isLastAnnounced;
      const page = await this.feed(place, `?limit=1000&after=${cursor}`);
      ({ cursor } = page);
      for (const { id } of page.changes) this.#onEvent(id);
      this.#isFollowed = wasLast && page.changes.length === 0;
      await sleep(POLL_EVERY_MS);
    }
  }

  #onEvent(id: string): void {
    const index = this.#seen.get(id) ?? 0;
    this.#seen.set(id, index + 1);
    const edit = this.#edits.get(id)?.[index];
    if (edit === undefined) throw new Error(`${id} has more events than edits.`);
    this.delays.push(performance.now() - edit.atMs);
    this.#toRead.push({ id, number: edit.number });
  }

  async #read(): Promise<void> {
    for (let place = 0; !this.#isFollowed || this.#toRead.length > 0; place += 1) {
      const next = this.#toRead.shift();
      if (next === undefined) {
        await sleep(POLL_EVERY_MS);
        continue;
      }
      const { title, cacheStatus } = await this.#world.readAt(place, next.id);
      if (numberOf(title) < next.number) this.old.push(`${title} for Edit ${next.number}: ${cacheStatus}`);
    }
  }
}

test('events of announced changes', async (context) => {
  const world = await forTest(ChangingSample.start({ gateways: GATEWAYS, evaluations: 120, latencyMs: 20 }));
  const ids = [...world.calls.keys()];
  for (const id of ids) for (const place of world.gateways.keys()) await world.titleAt(place, id);
  const consumer = new Consumer(world);
  const { cursor } = await consumer.feed(0, '');
  const consuming = consumer.consume(cursor);
  for (let number = 0; number < EVENTS; number += AT_ONCE) {
    await consumer.untilRead();
    const edited = Array.from({ length: AT_ONCE }, (_, index) =>
      world.edit(ids[(number + index) % ids.length] ?? '', `Edit ${number + index}`),
    );
    for (const [index, { id }] of edited.entries()) consumer.noteEdit(id, number + index);
    const status = await world.announce(edited, number / AT_ONCE);
    if (status !== 200) throw new Error(`An announcement was answered ${status}.`);
  }
  consumer.noteLast();
  await consuming;
  const { delays, old, failed } = consumer;
  const slowest = percentile(delays, 0.99);
  prove(
    context,
    {
      name: 'event of a change',
      bar: `${count(EVENTS)} events: each once, p99 at most 1,000 ms after the announcement was sent`,
      measured: `${count(delays.length)} events, p50 ${ms(percentile(delays, 0.5))}, p99 ${ms(slowest)}; ${count(failed)} polls failed`,
      ok: delays.length === EVENTS && slowest <= 1000,
    },
    {
      name: 'read on an event',
      bar: 'never older than the change, at any process',
      measured: [`${count(old.length)} old answers`, ...old, ...(await world.fallbacks())].join('; '),
      ok: old.length === 0,
    },
  );
});
