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

test('a flight that asks whether it is wanted is, as long as one of those who joined it waits', async () => {
  const { flights } = createFlights();
  const waiting = [false, true];
  const asked = Promise.withResolvers<() => boolean>();
  const end = Promise.withResolvers<number>();
  const fly = (isWanted: () => boolean): Promise<number> => {
    asked.resolve(isWanted);
    return end.promise;
  };
  flights.join('a', fly, () => waiting[0] === true);
  flights.join('a', fly, () => waiting[1] === true);
  const isWanted = await asked.promise;
  expect(isWanted()).toBe(true);
  waiting[1] = false;
  expect(isWanted()).toBe(false);
  end.resolve(1);
});

test('one that is not wanted any more is joined by nobody: who comes then begins another, and its failure is nobody else’s', async () => {
  const { flights, fly, calls } = createFlights();
  const asked = Promise.withResolvers<() => boolean>();
  const end = Promise.withResolvers<number>();
  const abandoned = flights.join(
    'a',
    (isWanted) => {
      asked.resolve(isWanted);
      return end.promise;
    },
    () => false,
  );
  const isWanted = await asked.promise;
  expect(isWanted()).toBe(false);
  const later = flights.join('a', fly);
  expect([later.isLed, isWanted()]).toEqual([true, false]);
  end.reject(new Error('abandoned'));
  await expect(abandoned.landing).rejects.toThrow('abandoned');
  await expect(later.landing).resolves.toBe(1);
  await expect(flights.join('a', fly).landing).resolves.toBe(2);
  expect(calls()).toBe(2);
});

test('whoever looks is told since when a key is under way, and whether its last flight has just failed', async () => {
  const { clock, flights, fly } = createFlights();
  const look = () => [flights.underWaySinceMs('a'), flights.hasJustFailed('a')];
  expect(look()).toEqual([null, false]);
  const beganAtMs = clock.nowMs();
  const { landing } = flights.join('a', fail);
  clock.advance(5);
  expect(look()).toEqual([beganAtMs, false]);
  await expect(landing).rejects.toThrow('down');
  expect(look()).toEqual([null, true]);
  clock.advance(1000);
  expect(look()).toEqual([null, false]);
  await flights.join('a', fly).landing;
  expect(look()).toEqual([null, false]);
});

test('a failure that says nothing of the next try reaches those who wait, and is forgotten', async () => {
  const flights = new SingleFlight<number>(new ManualClock(), 1000, (error) => String(error) !== 'Error: down');
  const waiters = [flights.join('a', fail).landing, flights.join('a', fail).landing];
  for (const waiter of waiters) await expect(waiter).rejects.toThrow('down');
  expect(flights.hasJustFailed('a')).toBe(false);
  await expect(flights.join('a', () => Promise.resolve(7)).landing).resolves.toBe(7);
});
