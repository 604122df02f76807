/** A Plan in one plain sentence, with what is under way. Pure. */
import type { MissReason } from '../telemetry/events.ts';
import type { Maintenance } from './maintenance.ts';
import { isAtOnce, type CachedCopy, type Plan } from './plan.ts';
import type { Tier } from './reader.ts';

export interface NextRead {
  /** Where its answer comes from first; null if it fails. */
  readonly from: Tier | 'store' | null;
  /** Whether it asks the store: not at all, behind the reader's back, or waiting for the answer. */
  readonly store: 'not-asked' | 'behind' | 'waited-for';
  /** Why it misses; null if it is answered at once. */
  readonly miss: MissReason | null;
  readonly text: string;
}

export interface Facts {
  readonly miss: MissReason;
  readonly maintenance: Maintenance | null;
  /** The record is known to be of another workspace. */
  readonly isKnownForeign: boolean;
  /** This process is asking the store. */
  readonly isUnderWay: boolean;
  /** Another process is. */
  readonly isLeased: boolean;
  readonly hasJustFailed: boolean;
  /** The shared cache has a fresh copy for this reader. */
  readonly isFreshInRedis: boolean;
}

const TIERS = { memory: 'memory', redis: 'Redis' } as const;

export function nextRead(next: Plan, facts: Facts): NextRead {
  if (next.action === 'fetch') return fetched(next.fallback, facts);
  if (next.action === 'refuse') return withoutStore(null, facts.miss, paused(next.maintenance));
  const { copy } = next;
  if (!isAtOnce(next)) return withoutStore(copy, facts.miss, unasked(facts));
  const served = `The next read ${verbOf(copy)} from ${TIERS[copy.tier]}`;
  const from = copy.tier;
  if (next.action === 'serve-and-refresh') {
    const { isBegun, text } = refresh(facts);
    return { from, store: isBegun ? 'behind' : 'not-asked', miss: null, text: `${served} and ${text}.` };
  }
  return { from, store: 'not-asked', miss: null, text: `${served}${restOf(copy, facts)}.` };
}

function verbOf({ stored }: CachedCopy): string {
  return stored.entry.answer.kind === 'found' ? 'is served' : 'is answered 404';
}

function restOf(copy: CachedCopy, facts: Facts): string {
  if (copy.state !== 'fresh') return ` and starts no refresh, because ${unasked(facts)}`;
  const isForeign = facts.isKnownForeign && copy.stored.entry.answer.kind === 'absent';
  return isForeign ? ': the record is of a workspace that is not asked for' : '';
}

function refresh({ isUnderWay, hasJustFailed, isLeased, isFreshInRedis }: Facts): {
  readonly isBegun: boolean;
  readonly text: string;
} {
  if (isUnderWay) return { isBegun: false, text: 'leaves the refresh to the one that is under way' };
  if (hasJustFailed) return { isBegun: false, text: 'starts no refresh, because the last one has just failed' };
  if (isLeased) return { isBegun: false, text: 'waits behind for the refresh that another process has under way' };
  if (isFreshInRedis) {
    return { isBegun: false, text: 'takes over the fresh copy that another process has stored in Redis' };
  }
  return { isBegun: true, text: 'starts one refresh behind' };
}

/** Nothing is served at once: the reader waits for the store, or gets what is left if the store can't be had. */
function fetched(fallback: CachedCopy | null, { miss, isUnderWay, isLeased, hasJustFailed }: Facts): NextRead {
  if (!isUnderWay && hasJustFailed) {
    return withoutStore(fallback, miss, 'the last call to the store has just failed and is not repeated yet');
  }
  let wait = 'asks the store and waits for its answer';
  if (isUnderWay) wait = 'waits for the call to the store that is under way here';
  else if (isLeased) wait = 'waits for the call to the store that another process has under way';
  const or =
    fallback === null ? '' : `, and is served the copy in ${TIERS[fallback.tier]} if that fails or takes over 1 s`;
  return { from: 'store', store: 'waited-for', miss, text: `The next read ${wait}${or}, because ${REASONS[miss]}.` };
}

function withoutStore(copy: CachedCopy | null, miss: MissReason, why: string): NextRead {
  const store = 'not-asked' as const;
  if (copy === null) {
    const text = `The next read fails with 500 and Retry-After, because ${REASONS[miss]} and ${why}.`;
    return { from: null, store, miss, text };
  }
  const verb = copy.stored.entry.answer.kind === 'found' ? 'is served the' : 'is answered 404 by the';
  const text = `The next read ${verb} expired copy in ${TIERS[copy.tier]}, because ${why}.`;
  return { from: copy.tier, store, miss, text };
}

const REASONS: Readonly<Record<MissReason, string>> = {
  'never-seen': 'no copy is held',
  expired: 'the copy that is held has expired',
  evicted: 'the copy that was held had to make room',
  purged: 'the copy that is held was purged',
  'not-cacheable': 'the times of the class keep nothing',
};

/** Why a copy that is not fresh is served without asking the store. */
function unasked({ maintenance }: Facts): string {
  if (maintenance !== null) return paused(maintenance);
  return 'the store has just said that the record is of another workspace';
}

function paused({ untilMs }: Maintenance): string {
  return `the store is asked nothing until ${new Date(untilMs).toISOString()}`;
}
