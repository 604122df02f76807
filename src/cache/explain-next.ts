/** What the next read of a question would do, in one plain sentence. Pure. It follows the read-through step by step. */
import type { Copy, Explanation } from './explain.ts';
import { isReplacedBy, isServedAtOnce, isServedOnError } from './held.ts';
import type { MissReason } from '../telemetry/events.ts';
import { isCacheable } from './ttl-policy.ts';

export interface NextRead {
  /** Where its answer comes from first; null where it fails. */
  readonly from: 'memory' | 'redis' | 'store' | null;
  /** Whether it asks the store: not at all, behind its back, or waiting for the answer. */
  readonly store: 'not-asked' | 'behind' | 'waited-for';
  /** Why it misses; null where it is answered at once. */
  readonly miss: MissReason | null;
  readonly text: string;
}

export type Facts = Pick<
  Explanation,
  'memory' | 'isKnownForeign' | 'shared' | 'flight' | 'wasEvicted' | 'maintenance' | 'times'
>;

interface Placed {
  readonly copy: Copy;
  readonly from: 'memory' | 'redis';
}

const PLACES = { memory: 'memory', redis: 'Redis' } as const;

export function nextRead(facts: Facts): NextRead {
  const own = visible(facts.memory, 'memory');
  if (own !== null && isServedAtOnce(own.copy)) return atOnce(own, facts);
  if (facts.isKnownForeign && (own === null || !isServedOnError(own.copy))) return foreign();
  const held = newer(own, visible(facts.shared.state === 'asked' ? facts.shared.copy : null, 'redis'));
  if (held !== null && isServedAtOnce(held.copy)) return atOnce(held, facts);
  return missing(held, facts);
}

function visible(copy: Copy | null, from: Placed['from']): Placed | null {
  return copy === null || copy.isVisible === false ? null : { copy, from };
}

function newer(local: Placed | null, shared: Placed | null): Placed | null {
  if (local === null || shared === null) return shared ?? local;
  return isReplacedBy(local.copy, shared.copy) ? shared : local;
}

function atOnce(held: Placed, facts: Facts): NextRead {
  const { copy, from } = held;
  const verb = copy.isFound ? 'is served' : 'is answered 404';
  const served = `The next read ${verb} from ${PLACES[from]}`;
  if (copy.usability === 'fresh') return { from, store: 'not-asked', miss: null, text: `${served}.` };
  const { isBegun, text } = refresh(facts);
  return { from, store: isBegun ? 'behind' : 'not-asked', miss: null, text: `${served} and ${text}.` };
}

function refresh({ maintenance, flight, shared, isKnownForeign }: Facts): {
  readonly isBegun: boolean;
  readonly text: string;
} {
  if (isKnownForeign) return { isBegun: false, text: 'starts no refresh' };
  if (maintenance !== null) return { isBegun: false, text: `starts no refresh, because ${paused(maintenance)}` };
  if (flight.sinceMs !== null) return { isBegun: false, text: 'leaves the refresh to the one that is under way' };
  if (flight.hasJustFailed || (shared.state === 'asked' && shared.hasJustFailed)) {
    return { isBegun: false, text: 'starts no refresh, because the last one has just failed' };
  }
  if (shared.state === 'asked' && shared.leaseLeftMs !== null) {
    return { isBegun: false, text: 'waits behind for the refresh that another process has under way' };
  }
  const held = visible(shared.state === 'asked' ? shared.copy : null, 'redis');
  if (held?.copy.usability === 'fresh') {
    return { isBegun: false, text: 'takes over the fresh copy that another process has stored in Redis' };
  }
  return { isBegun: true, text: 'starts one refresh behind' };
}

function foreign(): NextRead {
  const text = 'The next read is answered 404 from memory: the record is of a workspace that is not asked for.';
  return { from: 'memory', store: 'not-asked', miss: null, text };
}

/** Nothing to be served at once: the store, or what is left where it is not to be had. */
function missing(held: Placed | null, facts: Facts): NextRead {
  const miss = missReason(held, facts);
  const spare = held !== null && isServedOnError(held.copy) ? held : null;
  const { maintenance, flight, shared } = facts;
  if (maintenance !== null) return withoutStore(spare, miss, paused(maintenance));
  const hasJustFailed = flight.hasJustFailed || (shared.state === 'asked' && shared.hasJustFailed);
  if (flight.sinceMs === null && hasJustFailed) {
    return withoutStore(spare, miss, 'the last call to the store has just failed and is not repeated yet');
  }
  const wait = waiting(facts);
  const or = spare === null ? '' : `, and is served the copy in ${PLACES[spare.from]} if that fails or takes over 1 s`;
  return { from: 'store', store: 'waited-for', miss, text: `The next read ${wait}${or}, because ${because(miss)}.` };
}

function withoutStore(spare: Placed | null, miss: MissReason, why: string): NextRead {
  const store = 'not-asked' as const;
  if (spare === null) {
    const text = `The next read fails with 500 and Retry-After, because ${because(miss)} and ${why}.`;
    return { from: null, store, miss, text };
  }
  const verb = spare.copy.isFound ? 'is served the expired copy' : 'is answered 404 by the expired copy';
  return { from: spare.from, store, miss, text: `The next read ${verb} in ${PLACES[spare.from]}, because ${why}.` };
}

function waiting({ flight, shared }: Facts): string {
  if (flight.sinceMs !== null) return 'waits for the call to the store that is under way here';
  if (shared.state === 'asked' && shared.leaseLeftMs !== null) {
    return 'waits for the call to the store that another process has under way';
  }
  return 'asks the store and waits for its answer';
}

function missReason(held: Placed | null, { times, wasEvicted }: Facts): MissReason {
  if (!isCacheable(times)) return 'not-cacheable';
  if (held !== null) return held.copy.usability === 'purged' ? 'purged' : 'expired';
  return wasEvicted ? 'evicted' : 'never-seen';
}

const REASONS: Readonly<Record<MissReason, string>> = {
  'never-seen': 'no copy is held',
  expired: 'the copy that is held has expired',
  evicted: 'the copy that was held had to make room',
  purged: 'the copy that is held was purged',
  'not-cacheable': 'the times of the class keep nothing',
};

function because(reason: MissReason): string {
  return REASONS[reason];
}

function paused({ untilMs }: NonNullable<Facts['maintenance']>): string {
  return `the store is asked nothing until ${new Date(untilMs).toISOString()}`;
}
