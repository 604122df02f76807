/** /api/cache/ttl, /purge and /maintenance: changing what the cache does. Every change goes into the audit. */
import { isDeepStrictEqual } from 'node:util';
import type { Maintenance, MaintenanceControl } from '../cache/maintenance.ts';
import { purge, type PurgeDependencies } from '../cache/purge.ts';
import type { Tag } from '../cache/purge-log.ts';
import {
  CACHE_CLASSES,
  type CacheClass,
  type CacheTtl,
  type TtlControl,
  type TtlEnd,
  type TtlPolicy,
  type TtlState,
} from '../cache/ttl-policy.ts';
import type { Clock } from '../clock.ts';
import { formatDuration } from '../duration.ts';
import { ALLOWED_TTL, iso, LONGEST_MAINTENANCE_MS, MAINTENANCE_RULES, PURGE_RULES, TTL_RULES } from './api.ts';
import type { MaintenanceView, PurgeView, TtlView, WantedTtl } from './api.ts';
import type { Audit, AuditedChange, AuditEntry } from './audit.ts';
import { callerOf, endpoint, type Endpoint, type EndpointContext } from './endpoint.ts';
import { AdminError, attempt, type AttemptedChange } from './errors.ts';
import { faulty, readBody } from './input.ts';

const TTL_NAMES = ['fresh', 'stale', 'error'] as const;

/** The three TTLs of a class, as the interface calls them. */
type TtlName = (typeof TTL_NAMES)[number];

/** The view of a TTL is made from these. */
export interface TtlSources {
  /** This process's. */
  readonly times: Pick<TtlPolicy, 'stateOf'>;
  /** The source of a configured value. */
  readonly configuredBy: (cacheClass: CacheClass, name: TtlName) => 'default' | 'file' | 'environment';
}

export interface CacheControlOptions extends TtlSources, PurgeDependencies {
  /** Changes TTLs in every process. */
  readonly timesControl: TtlControl;
  readonly maintenance: MaintenanceControl;
  readonly audit: Audit;
  readonly clock: Clock;
}

export function cacheControlEndpoints(options: CacheControlOptions): readonly Endpoint[] {
  return [
    ...ttlEndpoints(options),
    endpoint(
      'POST',
      '/api/cache/purge',
      'purge cached answers by tag, at once or softly; with dryRun it only counts what would be purged',
      (ctx) => handlePurge(ctx, options),
    ),
    ...maintenanceEndpoints(options),
  ];
}

function ttlEndpoints(options: CacheControlOptions): readonly Endpoint[] {
  const { timesControl, audit, clock } = options;
  const path = '/api/cache/ttl';
  return [
    endpoint(
      'GET',
      path,
      'the TTLs in force of each class of answers, where each comes from, and until when',
      async (ctx) => {
        const entries = await audit.entries();
        ctx.body = { classes: CACHE_CLASSES.map((cacheClass) => ttlView(cacheClass, entries, options)) };
      },
    ),
    endpoint(
      'PUT',
      `${path}/:class`,
      'set TTLs of a class, with `for` only for a while; they rule at once, for stored answers too',
      async (ctx) => {
        const cacheClass = classOf(ctx);
        const wanted = await readBody(ctx, TTL_RULES);
        if (Object.keys(wanted.ttl).length === 0) {
          const members = `at least one of fresh, stale and error, each ${ALLOWED_TTL}`;
          throw faulty([`the body: sets no time; allowed: ${members}`]);
        }
        const untilMs = wanted.forMs === null ? null : clock.nowMs() + wanted.forMs;
        const run = () => timesControl.set(cacheClass, wanted.ttl, untilMs);
        await changeTtl(ctx, { cacheClass, action: TTL_SET, wanted, run }, options);
      },
    ),
    endpoint('DELETE', `${path}/:class`, 'let the TTLs of a class be those of the configuration again', (ctx) => {
      const cacheClass = classOf(ctx);
      const run = () => timesControl.reset(cacheClass);
      return changeTtl(ctx, { cacheClass, action: 'cache.ttl.reset', wanted: null, run }, options);
    }),
  ];
}

function maintenanceEndpoints(options: CacheControlOptions): readonly Endpoint[] {
  const { maintenance, clock } = options;
  const path = '/api/cache/maintenance';
  return [
    endpoint(
      'GET',
      path,
      'whether maintenance keeps calls from the store, until when, and who began it',
      async (ctx) => {
        ctx.body = maintenanceView(maintenance.current(), clock);
      },
    ),
    endpoint(
      'PUT',
      path,
      'keep every call from the store for a while, a day at most: copies are served, reads without one fail; it ends by itself',
      async (ctx) => {
        const untilMs = await readMaintenanceEnd(ctx, clock);
        const change = { action: 'cache.maintenance.on', asked: { until: iso(untilMs) } };
        await changeMaintenance(ctx, change, options, () => maintenance.begin(untilMs, callerOf(ctx)));
      },
    ),
    endpoint('DELETE', path, 'end maintenance: the store is called again', (ctx) =>
      changeMaintenance(ctx, { action: 'cache.maintenance.off', asked: null }, options, () => maintenance.end()),
    ),
  ];
}

const TTL_SET = 'cache.ttl.set';

/** The class of the path. Throws AdminError 404 if there is none of that name. */
function classOf({ params }: EndpointContext): CacheClass {
  const named = CACHE_CLASSES.find((cacheClass) => cacheClass === params['class']);
  if (named !== undefined) return named;
  throw new AdminError(404, `The path names no class of answers. The classes are ${CACHE_CLASSES.join(', ')}.`, {
    privateMessage: 'no such cache class',
  });
}

interface TtlEdit {
  readonly cacheClass: CacheClass;
  readonly action: string;
  /** Null for a reset. */
  readonly wanted: WantedTtl | null;
  readonly run: () => ReturnType<TtlControl['set']>;
}

/** Makes the change and answers with the class as it is then. If nothing changes, nothing is audited. */
async function changeTtl(
  ctx: EndpointContext,
  { cacheClass, action, wanted, run }: TtlEdit,
  options: CacheControlOptions,
): Promise<void> {
  const { audit } = options;
  const about = { who: callerOf(ctx), action, target: cacheClass };
  const forMs = wanted?.forMs ?? null;
  const spell = forMs === null ? {} : { for: formatDuration(forMs) };
  const asked = wanted === null ? null : { ...ttlTexts(wanted.ttl), ...spell };
  const { from, to } = await attempt(audit, { ...about, asked }, run);
  const [before, after] = [auditedTtl(from), auditedTtl(to)];
  if (!isDeepStrictEqual(before, after)) {
    await audit.record({ ...about, from: before, to: { ...after, ...spell } });
  }
  ctx.body = ttlView(cacheClass, await audit.entries(), options);
}

/** The TTLs in force, the names of those that are set, and the ends of those that have one. */
function auditedTtl({ ttl, set }: TtlState): object {
  const ends = TTL_NAMES.flatMap((name) => {
    const untilMs = set[`${name}Ms`] ?? null;
    return untilMs === null ? [] : [[name, iso(untilMs)] as const];
  });
  return {
    ...ttlTexts(ttl),
    set: TTL_NAMES.filter((name) => set[`${name}Ms`] !== undefined),
    ...(ends.length === 0 ? {} : { ends: Object.fromEntries(ends) }),
  };
}

/** As the interface writes them, such as `30s`; only those that are given. */
function ttlTexts(ttl: Partial<CacheTtl>): object {
  return Object.fromEntries(
    TTL_NAMES.flatMap((name) => {
      const ms = ttl[`${name}Ms`];
      return ms === undefined ? [] : [[name, formatDuration(ms)]];
    }),
  );
}

/** The audit's entry for TTLs that have ended by themselves. */
export function ttlEndEntry({ cacheClass, from, to }: TtlEnd): AuditedChange {
  return { who: 'evalgate', action: 'cache.ttl.end', target: cacheClass, from: auditedTtl(from), to: auditedTtl(to) };
}

/**
 * A class as the interface shows it: each TTL as text, in milliseconds, where it comes from, until when it is in force
 * and which one is in force then. `entries` are the audit's, newest first.
 */
export function ttlView(
  cacheClass: CacheClass,
  entries: readonly AuditEntry[],
  { times, configuredBy }: TtlSources,
): TtlView {
  const { ttl, set, afterwards } = times.stateOf(cacheClass);
  const each = <T>(view: (name: TtlName, untilMs: number | null | undefined) => T): Record<TtlName, T> => ({
    fresh: view('fresh', set.freshMs),
    stale: view('stale', set.staleMs),
    error: view('error', set.errorMs),
  });
  const last = lastSet(cacheClass, Object.values(set), entries);
  return {
    class: cacheClass,
    ...each((name) => formatDuration(ttl[`${name}Ms`])),
    ...ttl,
    source: each((name, untilMs) => (untilMs === undefined ? configuredBy(cacheClass, name) : 'set')),
    until: each((_, untilMs) => (typeof untilMs === 'number' ? iso(untilMs) : null)),
    afterwards: each((name, untilMs) => (typeof untilMs === 'number' ? formatDuration(afterwards[`${name}Ms`]) : null)),
    setBy: last?.who ?? null,
    setAt: last?.at ?? null,
  };
}

/** The last change that is in force; undefined if it is so old that the audit does not keep it any more. */
function lastSet(
  cacheClass: CacheClass,
  ends: readonly (number | null)[],
  newestFirst: readonly AuditEntry[],
): AuditEntry | undefined {
  if (ends.length === 0) return undefined;
  const isAnyToEnd = ends.some((untilMs) => untilMs !== null);
  return newestFirst.find(
    ({ action, target, to }) => action === TTL_SET && target === cacheClass && (isAnyToEnd || !isForAWhile(to)),
  );
}

function isForAWhile(to: unknown): boolean {
  return typeof to === 'object' && to !== null && 'for' in to;
}

/** A purge may name a thousand tags; the audit is bounded. */
const MOST_AUDITED_TAGS = 100;

async function handlePurge(ctx: EndpointContext, options: CacheControlOptions): Promise<void> {
  const { audit } = options;
  const request = await readBody(ctx, PURGE_RULES);
  const { mode, isExact, isDryRun } = request;
  const about = { who: callerOf(ctx), action: 'cache.purge', target: 'cache' };
  const exactly = isExact ? { exact: true } : {};
  const asked = { mode, ...exactly, ...auditedTags(request.tags) };
  const run = () => purge(request, options);
  const { entries, bytes, isComplete, lists, tags } = await (isDryRun
    ? run()
    : attempt(audit, { ...about, asked }, run));
  if (!isDryRun) {
    const counted = { entries, bytes, ...(isComplete ? {} : { complete: false }) };
    await audit.record({ ...about, from: null, to: { mode, ...exactly, ...counted, ...auditedTags(tags) } });
  }
  const view: PurgeView = { entries, bytes, complete: isComplete, lists, tags, mode, exact: isExact, dryRun: isDryRun };
  ctx.body = view;
}

function auditedTags(tags: readonly Tag[]): object {
  return { tagCount: tags.length, tags: tags.slice(0, MOST_AUDITED_TAGS) };
}

/** Makes the change and answers with the state after it. Ending may be repeated: if it is off, nothing is audited. */
async function changeMaintenance(
  ctx: EndpointContext,
  { action, asked }: Pick<AttemptedChange, 'action' | 'asked'>,
  { audit, clock }: CacheControlOptions,
  run: () => ReturnType<MaintenanceControl['end']>,
): Promise<void> {
  const about = { who: callerOf(ctx), action, target: 'store' };
  const { from, to } = await attempt(audit, { ...about, asked }, run);
  if (from !== null || to !== null) {
    // If it was on already, only its end has moved.
    const isMoved = from !== null && to !== null;
    const done = isMoved ? 'cache.maintenance.move' : action;
    await audit.record({ ...about, action: done, from: auditedMaintenance(from), to: auditedMaintenance(to) });
  }
  ctx.body = maintenanceView(to, clock);
}

function auditedMaintenance(maintenance: Maintenance | null): object | null {
  return maintenance === null ? null : { until: iso(maintenance.untilMs), by: maintenance.by };
}

/** The end that a body asks for, in Unix milliseconds. Throws AdminError 400. */
async function readMaintenanceEnd(ctx: EndpointContext, clock: Clock): Promise<number> {
  const { forMs, untilMs } = await readBody(ctx, MAINTENANCE_RULES);
  const { allowed } = MAINTENANCE_RULES;
  const nowMs = clock.nowMs();
  if (forMs !== null && untilMs === null) return nowMs + forMs;
  if (forMs !== null || untilMs === null) {
    const given = forMs === null ? 'neither for nor until' : 'both for and until';
    throw faulty([`the body: holds ${given}; allowed: one of them: for: ${allowed.for}; until: ${allowed.until}`]);
  }
  if (untilMs > nowMs && untilMs - nowMs <= LONGEST_MAINTENANCE_MS) return untilMs;
  const gap = untilMs > nowMs ? `${formatDuration(untilMs - nowMs)} from now` : 'in the past';
  throw faulty([
    `until: given a time that is ${gap}, by this gateway's clock (${iso(nowMs)}); allowed: ${allowed.until}`,
  ]);
}

function maintenanceView(maintenance: Maintenance | null, clock: Clock): MaintenanceView {
  if (maintenance === null) return { active: false, until: null, leftMs: 0, by: null, since: null };
  const { sinceMs, untilMs, by } = maintenance;
  const leftMs = Math.max(0, untilMs - clock.nowMs());
  return { active: true, until: iso(untilMs), leftMs, by, since: iso(sinceMs) };
}
