import { beforeEach, expect, test } from 'vitest';
import { DependencyWatch, type Sighting, type Turn } from '../../src/dependencies.ts';
import { ManualClock } from '../support/manual-clock.ts';

const START = Date.parse('2026-01-15T12:00:00.000Z');
const OK: Sighting = { status: 'ok', detail: 'answers' };
const DOWN: Sighting = { status: 'degraded', detail: 'does not answer' };

let clock: ManualClock;
let turns: Turn[];
let watch: DependencyWatch;
let sightings: Record<string, Sighting>;
beforeEach(() => {
  clock = new ManualClock(START);
  turns = [];
  watch = new DependencyWatch({ clock, onTurn: (turn) => turns.push(turn) });
  sightings = {};
});

function add(name: string, first: Sighting, toldAs?: string): void {
  sightings[name] = first;
  const look = (): Sighting => sightings[name] ?? OK;
  watch.add(toldAs === undefined ? { name, look } : { name, look, toldAs });
}

function become(name: string, sighting: Sighting): void {
  sightings[name] = sighting;
  watch.look(name);
}

const told = (): string[] => turns.map(({ name, status, trouble }) => `${name} ${trouble ?? status}`);

test('each is listed with its status, since when it has that, and what there is to say now', () => {
  add('store', { status: 'unknown', detail: 'not asked yet' });
  add('redis', OK);
  clock.advance(1000);
  become('store', OK);
  clock.advance(1000);
  become('store', { status: 'ok', detail: 'answered 2 calls' });
  expect(watch.list()).toEqual([
    { name: 'store', status: 'ok', since: '2026-01-15T12:00:01.000Z', detail: 'answered 2 calls' },
    { name: 'redis', status: 'ok', since: '2026-01-15T12:00:00.000Z', detail: 'answers' },
  ]);
});

test('a turn is told once, with why, and its end with how long it lasted', () => {
  add('store', OK);
  clock.advance(5000);
  for (let look = 0; look < 3; look += 1) become('store', { ...DOWN, fields: { requestId: 'r' } });
  clock.advance(2500);
  for (let look = 0; look < 3; look += 1) become('store', OK);
  expect(turns).toEqual([
    {
      name: 'store',
      status: 'degraded',
      trouble: 'degraded',
      detail: 'does not answer',
      fields: { requestId: 'r' },
      lastedMs: null,
    },
    { name: 'store', status: 'ok', trouble: null, detail: 'answers', fields: {}, lastedMs: 2500 },
  ]);
});

test('the first sight of what is well is no turn, of what is not it is one', () => {
  add('store', { status: 'unknown', detail: 'not asked yet' });
  become('store', OK);
  add('redis', DOWN);
  expect(told()).toEqual(['redis degraded']);
});

test('it is looked at when it is asked for, too', () => {
  add('store', DOWN);
  clock.advance(1000);
  sightings['store'] = OK;
  expect(watch.list()[0]?.status).toBe('ok');
  expect(told()).toEqual(['store degraded', 'store ok']);
});

test('what knows better since when has the word', () => {
  add('store', { ...OK, sinceMs: START - 60_000 });
  become('store', { ...DOWN, sinceMs: START - 4000 });
  expect(watch.list()[0]?.since).toBe('2026-01-15T11:59:56.000Z');
  become('store', { ...OK, sinceMs: START - 1000 });
  expect(turns.at(-1)?.lastedMs).toBe(3000);
});

test('two uses of one Redis are told of as one: down with the first, well with the last', () => {
  add('redis-state', OK, 'redis');
  add('redis-cache', OK, 'redis');
  become('redis-cache', DOWN);
  clock.advance(100);
  become('redis-state', DOWN);
  clock.advance(900);
  become('redis-cache', OK);
  expect(told()).toEqual(['redis degraded']);
  clock.advance(500);
  become('redis-state', OK);
  expect(told()).toEqual(['redis degraded', 'redis ok']);
  expect(turns.at(-1)?.lastedMs).toBe(1500);
  expect(watch.list().map(({ name, since }) => `${name} ${since}`)).toEqual([
    'redis-state 2026-01-15T12:00:01.500Z',
    'redis-cache 2026-01-15T12:00:01.000Z',
  ]);
});

test('each kind of a trouble is told once, however often one becomes the other', () => {
  const alone: Sighting = { ...DOWN, trouble: 'alone' };
  const deaf: Sighting = { status: 'degraded', detail: 'answers, and is not heard', trouble: 'deaf' };
  add('redis', OK);
  for (let round = 0; round < 3; round += 1) {
    become('redis', alone);
    become('redis', deaf);
  }
  become('redis', OK);
  become('redis', alone);
  expect(told()).toEqual(['redis alone', 'redis deaf', 'redis ok', 'redis alone']);
});
