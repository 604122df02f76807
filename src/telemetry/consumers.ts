/**
 * The service that consumers get, as a dependency of `/readyz`: answers that are refused or failed, against the hour before;
 * and how long answers take, against the objectives. Counted by this process, in steps of ten seconds over the last hour.
 */
import type { Refresh } from '../cache/entry.ts';
import { MAX_UNANNOUNCED } from '../changes/open.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../time/clock.ts';
import type { Listed } from '../upstream/resources.ts';
import { degraded, type DependencyState, type Health } from './health.ts';
import { CLIENT_CLOSED_REQUEST, type RequestReport } from './request-report.ts';
import { Trouble } from './trouble.ts';

export type Objectives = Config['objectives'];

/** The name of the dependency. */
const ANSWERS = 'answers';
const STEP_MS = 10_000;
const HOUR_MS = 3_600_000;
/** The time that is looked at: the last minute, or five if there were too few requests in it. */
const MINUTE_MS = 60_000;
const MINUTES_MS = 300_000;
const IN_MINUTES = 'in the last 5 minutes';
/** Fewer requests say nothing. */
const MIN_REQUESTS = 20;
/** A finding holds until there was none for so long. */
const SETTLED_AFTER_MS = 60_000;
/** From this share on nearly all is lost. */
const NEARLY_ALL = 0.9;
/** A jump: so large a share, and so many times that of the hour before. */
const JUMP = { share: 0.05, times: 3, requests: 10 } as const;
/** Misses that take so many times as long as in the hour before, and so much longer. */
const SLOWER = { times: 4, byMs: 100 } as const;
/** Fewer refreshes say nothing of what is announced. */
const MIN_REFRESHES = 100;
/** The error budget of a month is used up in two days at this rate; the alerts have the same. */
const BURN_RATE = 14.4;
/** The share of reads that may take longer than a 99th percentile. */
const P99_BUDGET = 0.01;

const FAILURES = {
  unauthorized: '401 for keys that were good within the hour',
  forbidden: '403',
  limited: '429',
  failed: '5xx',
} as const;
type Failure = keyof typeof FAILURES;

/** Null for what says nothing of consumers: a stranger's 401, a client that left, the documents. */
function kindOf({ surface, status, keyId }: RequestReport): Failure | 'answered' | null {
  if (surface === 'other' || status === CLIENT_CLOSED_REQUEST) return null;
  if (status === 401) return keyId === null ? null : 'unauthorized';
  if (status === 403) return 'forbidden';
  if (status === 429) return 'limited';
  return status >= 500 ? 'failed' : 'answered';
}

const COUNTS = [
  'requests',
  'unauthorized',
  'forbidden',
  'limited',
  'failed',
  'hits',
  'slowHits',
  'misses',
  'slowMisses',
  'missMs',
  'records',
  'leftOut',
  'refreshes',
  'unannounced',
] as const;
type Counts = Record<(typeof COUNTS)[number], number>;

function noCounts(): Counts {
  return {
    requests: 0,
    unauthorized: 0,
    forbidden: 0,
    limited: 0,
    failed: 0,
    hits: 0,
    slowHits: 0,
    misses: 0,
    slowMisses: 0,
    missMs: 0,
    records: 0,
    leftOut: 0,
    refreshes: 0,
    unannounced: 0,
  };
}

/** One objective since the start. */
export interface ObjectiveCounts {
  readonly objective: 'hitP99' | 'missP99' | 'availability';
  readonly requests: number;
  readonly missed: number;
  /** The share that may miss it. */
  readonly budget: number;
}

interface Finding {
  readonly isCritical: boolean;
  readonly text: string;
}

export class ConsumerHealth {
  readonly #health: Health;
  readonly #clock: Clock;
  readonly #objectives: Objectives;
  readonly #areChangesAnnounced: boolean;
  readonly #totals = noCounts();
  /** Oldest first. */
  #steps: { readonly atMs: number; readonly counts: Counts }[] = [];
  readonly #trouble: Trouble<Finding>;

  constructor(health: Health, clock: Clock, { objectives, changes }: Pick<Config, 'objectives' | 'changes'>) {
    this.#health = health;
    this.#clock = clock;
    this.#objectives = objectives;
    this.#areChangesAnnounced = changes.announced;
    this.#trouble = new Trouble(clock, SETTLED_AFTER_MS);
    health.add({ name: ANSWERS, okMessage: 'consumers are served as before', check: () => this.#check() });
  }

  onRequest(report: RequestReport): void {
    const kind = kindOf(report);
    if (kind === null) return;
    this.#count(this.#now(), kind, report);
    this.#count(this.#totals, kind, report);
  }

  /** The store has sent a list. */
  onListed({ records, leftOut }: Listed): void {
    const counts = this.#now();
    counts.records += records;
    counts.leftOut += leftOut.filter(({ surface }) => surface === undefined).length;
  }

  /** The store has answered, and there was a copy to compare the answer with. */
  onRefresh({ changed, isAnnounced }: Pick<Refresh, 'changed' | 'isAnnounced'>): void {
    const counts = this.#now();
    counts.refreshes += 1;
    if (changed > 0 && !isAnnounced) counts.unannounced += 1;
  }

  /** The share of the last hour's refreshes that found a change which nobody had announced; null if there were too few. */
  unannouncedShare(): number | null {
    const nowMs = this.#clock.nowMs();
    const { refreshes, unannounced } = this.#sum(nowMs - HOUR_MS, nowMs);
    return refreshes < MIN_REFRESHES ? null : unannounced / refreshes;
  }

  /** How many requests count for each objective, how many missed it, and the share that may. */
  objectives(): readonly ObjectiveCounts[] {
    const { requests, unauthorized, failed, hits, slowHits, misses, slowMisses } = this.#totals;
    const { availability } = this.#objectives;
    return [
      { objective: 'hitP99', requests: hits, missed: slowHits, budget: P99_BUDGET },
      { objective: 'missP99', requests: misses, missed: slowMisses, budget: P99_BUDGET },
      { objective: 'availability', requests, missed: unauthorized + failed, budget: 1 - availability },
    ];
  }

  #count(counts: Counts, kind: Failure | 'answered', { cache, durationMs }: RequestReport): void {
    counts.requests += 1;
    if (kind !== 'answered') counts[kind] += 1;
    else if (cache === 'hit' || cache === 'stale-while-revalidate') {
      counts.hits += 1;
      if (durationMs > this.#objectives.hitP99Ms) counts.slowHits += 1;
    } else if (cache === 'miss' || cache === 'collapsed') {
      counts.misses += 1;
      counts.missMs += durationMs;
      if (durationMs > this.#objectives.missP99Ms) counts.slowMisses += 1;
    }
  }

  /** The counts of the step under way. With each new one, the steps before it are looked at. */
  #now(): Counts {
    const nowMs = this.#clock.nowMs();
    const last = this.#steps.at(-1);
    if (last !== undefined && nowMs - last.atMs < STEP_MS && nowMs >= last.atMs) return last.counts;
    this.#health.update(ANSWERS);
    const counts = noCounts();
    const oldestMs = nowMs - HOUR_MS - MINUTES_MS;
    this.#steps = [...this.#steps.filter(({ atMs }) => atMs > oldestMs && atMs < nowMs), { atMs: nowMs, counts }];
    return counts;
  }

  #check(): DependencyState {
    const found = this.#find() ?? this.#findUnannounced();
    if (found === null) this.#trouble.noteOk();
    else this.#trouble.note(found);
    const trouble = this.#trouble.current();
    if (trouble === null) return { status: 'ok', detail: 'consumers are served as in the hour before' };
    const { sinceMs, cause } = trouble;
    const message = cause.isCritical ? 'nearly all requests of consumers fail' : 'consumers are served worse';
    const text = cause.isCritical ? `nearly all requests fail: ${cause.text}` : cause.text;
    const detail = this.#trouble.okSinceMs === null ? text : `just over: ${text}`;
    return degraded(message, detail, { sinceMs, isCritical: cause.isCritical });
  }

  #find(): Finding | null {
    const nowMs = this.#clock.nowMs();
    const [minute, minutes] = [this.#sum(nowMs - MINUTE_MS, nowMs), this.#sum(nowMs - MINUTES_MS, nowMs)];
    const isBusy = minute.requests >= MIN_REQUESTS;
    const [recent, lately] = isBusy ? [minute, 'in the last minute'] : [minutes, IN_MINUTES];
    const fromMs = nowMs - (isBusy ? MINUTE_MS : MINUTES_MS);
    const before = this.#sum(fromMs - HOUR_MS, fromMs);
    if (recent.requests < MIN_REQUESTS) return null;
    const failures = failuresOf(recent, before, lately);
    const texts = [
      ...failures.texts,
      ...this.#slownessOf(minutes),
      ...slowerThanBefore(recent, before, lately),
      ...leftOutOf(minutes),
    ];
    return texts.length === 0 ? null : { isCritical: failures.isCritical, text: texts.join('; ') };
  }

  /** A store that is to announce every change does not: long times, and the feed, can't be trusted. */
  #findUnannounced(): Finding | null {
    const share = this.#areChangesAnnounced ? (this.unannouncedShare() ?? 0) : 0;
    if (share <= MAX_UNANNOUNCED) return null;
    const text = `${shareText(share, 1)} of refreshes found a change that the store had not announced`;
    return { isCritical: false, text };
  }

  #sum(fromMs: number, toMs: number): Counts {
    const sums = noCounts();
    for (const { atMs, counts } of this.#steps) {
      if (atMs <= fromMs || atMs > toMs) continue;
      for (const name of COUNTS) sums[name] += counts[name];
    }
    return sums;
  }

  /** Objectives whose budget burns fast. */
  #slownessOf({ requests, failed, hits, slowHits, misses, slowMisses }: Counts): readonly string[] {
    const { hitP99Ms, missP99Ms, availability } = this.#objectives;
    const texts: string[] = [];
    if (burnsFast(slowHits, hits))
      texts.push(`${shareText(slowHits, hits)} of hits ${IN_MINUTES} take over ${hitP99Ms} ms`);
    if (burnsFast(slowMisses, misses))
      texts.push(`${shareText(slowMisses, misses)} of misses ${IN_MINUTES} take over ${missP99Ms} ms`);
    if (burnsFast(failed, requests, 1 - availability)) {
      texts.push(
        `${shareText(failed, requests)} of requests ${IN_MINUTES} fail; ${Number((100 * availability).toFixed(3))} % are to be served`,
      );
    }
    return texts;
  }
}

/** Failures whose share has jumped, and whether they are nearly all. Limits that are always used up are no jump. */
function failuresOf(
  recent: Counts,
  before: Counts,
  lately: string,
): { readonly isCritical: boolean; readonly texts: readonly string[] } {
  const names: Failure[] = ['unauthorized', 'forbidden', 'limited', 'failed'];
  const isKnown = before.requests >= MIN_REQUESTS;
  const jumps = names.filter((name) => {
    const [share, earlier] = [recent[name] / recent.requests, isKnown ? before[name] / before.requests : 0];
    // Without an hour before, a consumer may always have been refused.
    if (!isKnown && (name === 'forbidden' || name === 'limited')) return false;
    return recent[name] >= JUMP.requests && share >= JUMP.share && share >= JUMP.times * earlier;
  });
  const outage = names.filter((name) => jumps.includes(name) || name === 'failed' || name === 'unauthorized');
  const lost = outage.reduce((sum, name) => sum + recent[name], 0);
  const isCritical = lost / recent.requests >= NEARLY_ALL;
  const shown = isCritical ? outage.filter((name) => recent[name] > 0) : jumps;
  const texts = shown.map((name) => {
    const earlier = isKnown ? `, ${shareText(before[name], before.requests)} in the hour before` : '';
    return `${shareText(recent[name], recent.requests)} of answers ${lately} are ${FAILURES[name]}${earlier}`;
  });
  return { isCritical, texts };
}

/** Readers wait for the store much longer than before, objectives or not. */
function slowerThanBefore(recent: Counts, before: Counts, lately: string): readonly string[] {
  if (recent.misses < MIN_REQUESTS || before.misses < MIN_REQUESTS) return [];
  const [nowMs, beforeMs] = [recent.missMs / recent.misses, before.missMs / before.misses];
  if (nowMs < SLOWER.times * beforeMs || nowMs - beforeMs < SLOWER.byMs) return [];
  const times = Math.round(nowMs / Math.max(1, beforeMs));
  return [`misses ${lately} take ${Math.round(nowMs)} ms, ${times} times as long as in the hour before`];
}

/** The alert EvalgateStoreManyRecordsLeftOut has the same share. */
function leftOutOf({ records, leftOut }: Counts): readonly string[] {
  if (leftOut < JUMP.requests || leftOut / records < JUMP.share) return [];
  return [
    `${shareText(leftOut, records)} of the records in lists ${IN_MINUTES} are left out, because they are malformed`,
  ];
}

/** Whether an objective is missed so often that its budget is soon used up. */
function burnsFast(bad: number, all: number, budget = P99_BUDGET): boolean {
  return bad >= JUMP.requests && bad / all > BURN_RATE * budget;
}

function shareText(part: number, all: number): string {
  const percent = (100 * part) / all;
  return `${percent === 0 || percent >= 10 ? Math.round(percent) : Number(percent.toPrecision(2))} %`;
}
