import { expect, test } from 'vitest';
import { SingleFlight } from '../../../src/cache/single-flight.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { settle } from '../../support/manual-timers.ts';

function createFlights(): {
  clock: ManualClock;
  flights: SingleFlight<number>;
  fly: () => Promise<number>;
  calls: () => number;
} {
  const clock = new ManualClock();
  let calls = 0;
  const fly = (): Promise<number> => Promise.resolve((calls += 1));
  return { clock, flights: new SingleFlight<number>(clock, 1000), fly, calls: () => calls };
}

const fail = (): Promise<number> => Promise.reject(new Error('down'));

test('all who come while a flight is under way get its answer, and one of them led it', async () => {
  const { flights, fly, calls } = createFlights();
  const joined = [flights.join('a', fly), flights.join('a', fly), flights.join('a', fly)];
  expect(joined.map(({ isLed }) => isLed)).toEqual([true, false, false]);
  await expect(Promise.all(joined.map(({ landing }) => landing))).resolves.toEqual([1, 1, 1]);
  expect(calls()).toBe(1);
});

test('flights of different keys go side by side, and a landed one is over', async () => {
  const { flights, fly } = createFlights();
  await expect(Promise.all([flights.join('a', fly).landing, flights.join('b', fly).landing])).resolves.toEqual([1, 2]);
  await expect(flights.join('a', fly).landing).resolves.toBe(3);
});

test('a failure is told to all waiters, and for 1 s to all who come after, without another try', async () => {
  const { clock, flights, fly, calls } = createFlights();
  const waiters = [flights.join('a', fail).landing, flights.join('a', fail).landing];
  for (const waiter of waiters) await expect(waiter).rejects.toThrow('down');
  clock.advance(999);
  expect(flights.join('a', fly).isLed).toBe(false);
  await expect(flights.join('a', fly).landing).rejects.toThrow('down');
  expect(calls()).toBe(0);
  clock.advance(1);
  await expect(flights.join('a', fly).landing).resolves.toBe(1);
});

test('the second failure of a key is remembered from its own time', async () => {
  const { clock, flights, fly } = createFlights();
  await expect(flights.join('a', fail).landing).rejects.toThrow('down');
  clock.advance(1000);
  await expect(flights.join('b', fail).landing).rejects.toThrow('down');
  await expect(flights.join('a', fail).landing).rejects.toThrow('down');
  clock.advance(999);
  await expect(flights.join('a', fly).landing).rejects.toThrow('down');
});

test('a flight that nobody waits for any more goes on, and its answer reaches who comes then', async () => {
  const { flights } = createFlights();
  const { promise, resolve } = Promise.withResolvers<number>();
  void flights.join('a', () => promise);
  await settle();
  const late = flights.join('a', () => Promise.resolve(2));
  resolve(1);
  await expect(late.landing).resolves.toBe(1);
});

test('a flight knows when it began', async () => {
  const { clock, flights, fly } = createFlights();
  const beganAtMs = clock.nowMs();
  flights.join('a', fly);
  clock.advance(5);
  expect(flights.join('a', fly).startedAtMs).toBe(beganAtMs);
  await settle();
});
