/**
 * Scenes that chance alone hardly ever plays, since each needs several things to happen in turn. A fleet has one of them now
 * and then, among all else that happens to it.
 */
import type { SeededRandom } from '../support/random.ts';
import type { Target } from './history.ts';
import type { Action } from './plan.ts';

export interface Stage {
  readonly random: SeededRandom;
  /** The places of the gateways, shuffled; at least two. */
  readonly slots: readonly [first: number, second: number, ...others: number[]];
  /** In milliseconds from the beginning of the main part, which has 5,000. */
  readonly at: (atMs: number, action: Action) => void;
}

const ID = 'ev_1';
const EVALUATION: Target = { kind: 'evaluation', id: ID };
const TRANSCRIPT: Target = { kind: 'transcript', id: ID };
const PURGE_TAG = `evaluation:${ID}`;
/** It sees the workspace in which the record begins. */
const KEY = 0;
/** A read has sent its call to the store by then, and the store has not answered. */
const SENT_MS = 8;

export const SCENES = {
  /**
   * A process stands still for longer than its lease lives, another one takes the lease over, and the answer of the first one
   * comes before that of the second.
   */
  'lost lease': ({ random, slots: [first, second, third = first], at }) => {
    const beginMs = random.integer(100, 2000);
    const goesOnMs = beginMs + random.integer(2150, 2500);
    at(beginMs - 60, { do: 'purge', slot: second, tag: PURGE_TAG });
    at(beginMs, read(first, EVALUATION));
    at(beginMs + SENT_MS, { do: 'pause', slot: first, forMs: goesOnMs - beginMs - SENT_MS });
    at(beginMs + 100, read(second, EVALUATION));
    at(beginMs + 500, { do: 'store', mode: 'slow', forMs: 2400 });
    at(beginMs + 1500, { do: 'purge', slot: second, tag: PURGE_TAG });
    for (const afterMs of [20, 60, 150]) at(goesOnMs + afterMs, read(third, EVALUATION));
  },
  /** The state Redis goes on with an older copy, in which a purge is missing, while a process has a call from before it. */
  'lost purge': ({ random, slots: [first, second], at }) => {
    const beginMs = random.integer(100, 1200);
    at(beginMs - 60, { do: 'purge', slot: second, tag: PURGE_TAG });
    at(beginMs, read(first, TRANSCRIPT));
    at(beginMs + SENT_MS, { do: 'pause', slot: first, forMs: 900 });
    at(beginMs + 300, { do: 'edit', id: ID });
    at(beginMs + 400, { do: 'purge', slot: second, tag: PURGE_TAG });
    at(beginMs + 450, { do: 'redis-down', host: 0, forMs: 50, lostMs: 250 });
    for (const afterMs of [3100, 3300, 3600]) at(beginMs + afterMs, read(random.pick(first, second), TRANSCRIPT));
  },
  /** A record is edited and purged while a call for it is under way. */
  'purge during a call': ({ random, slots: [first, second], at }) => {
    const beginMs = random.integer(100, 3000);
    const purgeMs = beginMs + random.integer(60, 500);
    at(beginMs - 60, { do: 'purge', slot: second, tag: PURGE_TAG });
    at(beginMs - 5, { do: 'store', mode: 'slow', forMs: 1500 });
    at(beginMs, read(first, TRANSCRIPT));
    at(purgeMs - 3, { do: 'edit', id: ID });
    at(purgeMs, { do: 'purge', slot: random.pick(first, second), tag: PURGE_TAG });
    for (const afterMs of [1600, 1700, 1900]) at(beginMs + afterMs, read(random.pick(first, second), TRANSCRIPT));
  },
  /** A process stands still, is asked just then whether Redis answers, stands still again, and misses a purge. */
  'held up twice': ({ random, slots: [first, second], at }) => {
    const forMs = random.integer(3020, 3100);
    const lookMs = 1450 + random.integer(2, 8);
    const goesOnMs = lookMs + forMs;
    at(100, read(first, TRANSCRIPT));
    at(300, { do: 'pause', slot: first, forMs: 1150 });
    at(1400, { do: 'redis-late', host: 0, lateMs: random.integer(20, 30), forMs: 3590 });
    at(lookMs, { do: 'pause', slot: first, forMs });
    at(2500, { do: 'edit', id: ID });
    at(2700, { do: 'purge', slot: second, tag: random.pick('all', PURGE_TAG) });
    for (const afterMs of [0.1, 5, 10, 20, 40]) at(goesOnMs + afterMs, read(first, TRANSCRIPT));
  },
} satisfies Readonly<Record<string, (stage: Stage) => void>>;

/** The store announces changes of records that are being read, and a consumer follows the feed. */
export function announceChanges({ random, slots, at }: Stage): void {
  const slot = (): number => random.pick(...slots);
  at(random.integer(0, 500), { do: 'follow' });
  for (let count = random.integer(2, 8); count > 0; count -= 1) {
    const [atMs, id] = [random.integer(200, 4800), random.pick('ev_1', 'ev_2', 'ev_3')];
    for (let reads = random.integer(0, 4); reads > 0; reads -= 1) {
      const kind = random.pick('evaluation', 'transcript', 'transcript');
      at(Math.max(0, atMs + random.integer(-300, 60)), { do: 'read', slot: slot(), key: 3, target: { kind, id } });
    }
    const isNamed = random.next() < 0.5;
    at(atMs, { do: 'announce', slots: isNamed && random.next() < 0.5 ? [slot(), slot()] : [slot()], id, isNamed });
  }
}

function read(slot: number, target: Target): Action {
  return { do: 'read', slot, key: KEY, target };
}
