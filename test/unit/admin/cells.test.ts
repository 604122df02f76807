import * as fc from 'fast-check';
import { Counter, Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { CellCounter, CellHistogram, made2 } from '../../../src/admin/metrics/cells.ts';

const LABELS = { labelNames: ['route', 'status'] } as const;
const labelsArbitrary = fc.record({
  route: fc.constantFrom('/a', '/b/{id}', 'with "quotes"\n'),
  status: fc.constantFrom('200', '404'),
});

/** Lines without their order, in which cells were begun. */
async function scraped(registry: Registry): Promise<readonly string[]> {
  return (await registry.metrics()).split('\n').toSorted();
}

test('a counter of cells is scraped as one of prom-client that counted the same', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(labelsArbitrary, { maxLength: 30 }), async (events) => {
      const [ours, theirs] = [new Registry(), new Registry()];
      const about = { name: 'events_total', help: 'Events.', labelNames: [...LABELS.labelNames] };
      const cells = new CellCounter<'route' | 'status'>({ ...about, registers: [ours] });
      const counter = new Counter<'route' | 'status'>({ ...about, registers: [theirs] });
      const cellOf = made2((route: string, status: string) => cells.cell({ route, status }));
      for (const labels of events) {
        cellOf(labels.route, labels.status).add();
        counter.inc(labels);
      }
      expect(await scraped(ours)).toEqual(await scraped(theirs));
      // A scrape changes nothing.
      expect(await scraped(ours)).toEqual(await scraped(theirs));
    }),
  );
});

test('a histogram of cells is scraped as one of prom-client that observed the same', async () => {
  const observation = fc.record({
    labels: labelsArbitrary,
    value: fc.oneof(
      fc.constantFrom(0, 0.5, 1, 2.5, 10),
      fc.integer({ min: 0, max: 400 }).map((n) => n / 32),
    ),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(observation, { maxLength: 30 }), async (observations) => {
      const [ours, theirs] = [new Registry(), new Registry()];
      const about = {
        name: 'took_seconds',
        help: 'Time.',
        labelNames: [...LABELS.labelNames],
        buckets: [0.5, 1, 2.5, 10],
      };
      const cells = new CellHistogram<'route' | 'status'>({ ...about, registers: [ours] });
      const histogram = new Histogram<'route' | 'status'>({ ...about, registers: [theirs] });
      const cellOf = made2((route: string, status: string) => cells.cell({ route, status }));
      for (const { labels, value } of observations) {
        cellOf(labels.route, labels.status).observe(value);
        histogram.observe(labels, value);
      }
      expect(await scraped(ours)).toEqual(await scraped(theirs));
      expect(await Registry.merge([ours]).metrics()).toEqual(await ours.metrics());
    }),
  );
});

test('what is made of two things is made once, and found again by these very things', () => {
  const asked: string[] = [];
  interface Named {
    readonly name: string;
  }
  const pairOf = made2((place: Named, status: number) => {
    asked.push(`${place.name} ${status}`);
    return { place, status };
  });
  const [a, b, likeA] = [{ name: 'a' }, { name: 'b' }, { name: 'a' }];
  const first = pairOf(a, 200);
  expect(first).toEqual({ place: a, status: 200 });
  const all = new Set([first, pairOf(a, 404), pairOf(b, 200), pairOf(likeA, 200)]);
  expect(all.size).toBe(4);
  for (const pair of all) expect(pairOf(pair.place, pair.status)).toBe(pair);
  expect(asked).toEqual(['a 200', 'a 404', 'b 200', 'a 200']);
});
