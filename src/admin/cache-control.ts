/** /api/cache/ttl, /purge and /maintenance: changing what the cache does. Every change goes into the audit. */
import { isDeepStrictEqual } from 'node:util';
import type { Maintenance } from '../journal/journal.ts';
import { erase } from '../cache/erase.ts';
import { purge } from '../cache/purge.ts';
import type { Tag } from '../cache/purge-log.ts';
import { NO_SWEEP } from '../cache/shared-cache.ts';
import { CACHE_CLASSES, type CacheClass } from '../cache/ttl-policy.ts';
import type { Clock } from '../time/clock.ts';
import { formatDuration } from '../time/duration.ts';
import type { MaintenanceView, PurgeView, ReceiptView, TtlView } from '../operations/answers.ts';
import { iso, isoOrNull, ROUTES } from '../operations/api.ts';
import type { AuditEntry } from '../operations/audit.ts';
import {
  ALLOWED_MAINTENANCE,
  ALLOWED_TTL,
  eraseBody,
  MAX_MAINTENANCE_MS,
  maintenanceBody,
  purgeBody,
  ttlBody,
  type WantedTtl,
} from '../operations/bodies.ts';
import { type AdminOptions, callerOf, endpoint, type Endpoint, type EndpointContext } from './endpoint.ts';
import { makeChange } from '../operations/audited-change.ts';
import { AdminError } from '../operations/errors.ts';
import { faulty } from '../operations/input.ts';
import { auditedTtl, type TTL_NAMES, ttlTexts } from '../operations/time-changes.ts';
import { readBody } from './input.ts';

type TtlName = (typeof TTL_NAMES)[number];

export function cacheControlEndpoints(options: AdminOptions): readonly Endpoint[] {
  const { operations, cache, clock } = options;
  const { audit, maintenance } = operations;
  const { purges } = cache;
  return [
    endpoint(ROUTES.listTtls, async () => {
      const entries = await audit.entries();
      return { classes: CACHE_CLASSES.map((cacheClass) => ttlView(cacheClass, entries, options)) };
    }),
    endpoint(ROUTES.setTtl, async (ctx) => {
      const cacheClass = classOf(ctx);
      const wanted = await readBody(ctx, ttlBody());
      if (Object.keys(wanted.ttl).length === 0) {
        const members = `at least one of fresh, stale and error, each ${ALLOWED_TTL}`;
        throw faulty([`the body: sets no time; allowed: ${members}`]);
      }
      return changeTtl(ctx, options, cacheClass, wanted);
    }),
    endpoint(ROUTES.resetTtl, async (ctx) => changeTtl(ctx, options, classOf(ctx), null)),
    endpoint(ROUTES.purge, (ctx) => handlePurge(ctx, options)),
    endpoint(ROUTES.showDeletion, async () => {
      // While Redis does not answer nothing is deleted.
      const { passed, of } = (await cache.shared?.sweepProgress().catch(() => NO_SWEEP)) ?? NO_SWEEP;
      return { purges: purges.last, deletedUpTo: purges.sweptUpTo, passed, of };
    }),
    endpoint(ROUTES.erase, (ctx) => handleErase(ctx, options)),
    endpoint(ROUTES.showMaintenance, () => maintenanceView(maintenance.current(), clock)),
    endpoint(ROUTES.beginMaintenance, async (ctx) =>
      changeMaintenance(ctx, options, await readMaintenanceEnd(ctx, clock)),
    ),
    endpoint(ROUTES.endMaintenance, (ctx) => changeMaintenance(ctx, options, null)),
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

/** Sets TTLs of the class, or resets them if `wanted` is null; answers with the class as it is then. */
async function changeTtl(
  ctx: EndpointContext,
  options: AdminOptions,
  cacheClass: CacheClass,
  wanted: WantedTtl | null,
): Promise<TtlView> {
  const { cache, operations, clock } = options;
  const { audit } = operations;
  const forMs = wanted?.forMs ?? null;
  const untilMs = forMs === null ? null : clock.nowMs() + forMs;
  const duration = forMs === null ? {} : { for: formatDuration(forMs) };
  await makeChange(audit, {
    who: callerOf(ctx).name,
    action: wanted === null ? 'cache.ttl.reset' : TTL_SET,
    target: cacheClass,
    asked: wanted && { ...ttlTexts(wanted.ttl), ...duration },
    make: () =>
      wanted === null ? cache.ttlControl.reset(cacheClass) : cache.ttlControl.set(cacheClass, wanted.ttl, untilMs),
    note: (change) => {
      const [from, to] = [auditedTtl(change.from), auditedTtl(change.to)];
      return isDeepStrictEqual(from, to) ? null : { from, to: { ...to, ...duration } };
    },
  });
  return ttlView(cacheClass, await audit.entries(), options);
}

/**
 * A class as the interface shows it: each TTL as text, in milliseconds, its source, until when it is in force and which
 * one is in force then. `entries` are the audit's, newest first.
 */
export function ttlView(
  cacheClass: CacheClass,
  entries: readonly AuditEntry[],
  { cache, settings }: Pick<AdminOptions, 'cache' | 'settings'>,
): TtlView {
  const { ttl, set, afterwards } = cache.ttl.stateOf(cacheClass);
  const each = <T>(view: (name: TtlName, untilMs: number | null | undefined) => T): Record<TtlName, T> => ({
    fresh: view('fresh', set.freshMs),
    stale: view('stale', set.staleMs),
    error: view('error', set.errorMs),
  });
  const last = lastSet(cacheClass, Object.values(set), entries);
  return {
    class: cacheClass,
    ...each((name) => formatDuration(ttl[`${name}Ms`])),
    freshMs: ttl.freshMs,
    staleMs: ttl.staleMs,
    errorMs: ttl.errorMs,
    source: each((name, untilMs) => (untilMs === undefined ? settings.configuredBy(cacheClass, name) : 'set')),
    until: each((_, untilMs) => isoOrNull(untilMs ?? null)),
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
const MAX_AUDITED_TAGS = 100;

async function handlePurge(ctx: EndpointContext, { cache, operations }: AdminOptions): Promise<PurgeView> {
  const request = await readBody(ctx, purgeBody());
  const { mode, isExact, isDryRun } = request;
  const kind = { mode, ...(isExact ? { exact: true } : {}) };
  const make = () => purge(request, cache);
  const {
    entries,
    bytes,
    isComplete,
    lists,
    tags,
    isDeleted: deleted,
    problem,
  } = await (isDryRun
    ? make()
    : makeChange(operations.audit, {
        who: callerOf(ctx).name,
        action: 'cache.purge',
        target: 'cache',
        asked: { ...kind, ...auditedTags(request.tags) },
        make,
        note: (made) => {
          const complete = made.isComplete ? {} : { complete: false };
          const refused = made.problem === null ? {} : { problem: made.problem };
          const counts = { entries: made.entries, bytes: made.bytes, ...complete, ...refused };
          return { from: null, to: { ...kind, ...counts, ...auditedTags(made.tags) } };
        },
      }));
  const answer = { entries, bytes, complete: isComplete, lists, tags, mode, exact: isExact, dryRun: isDryRun };
  return { ...answer, deleted, problem, purge: cache.purges.last };
}

async function handleErase(ctx: EndpointContext, { cache, operations, clock }: AdminOptions): Promise<ReceiptView> {
  const { tag, gone } = await readBody(ctx, eraseBody());
  const receipt = await makeChange(operations.audit, {
    who: callerOf(ctx).name,
    action: 'cache.erase',
    target: tag,
    asked: { gone },
    make: () => erase(tag, gone, cache),
    note: (made) => ({ from: null, to: { ...made, gone } }),
  });
  return { ...receipt, at: iso(clock.nowMs()) };
}

function auditedTags(tags: readonly Tag[]): object {
  return { tagCount: tags.length, tags: tags.slice(0, MAX_AUDITED_TAGS) };
}

/** Begins maintenance or moves its end, or ends it if `untilMs` is null, which may be repeated: nothing is audited then. */
async function changeMaintenance(
  ctx: EndpointContext,
  { operations: { audit, maintenance }, clock }: AdminOptions,
  untilMs: number | null,
): Promise<MaintenanceView> {
  const who = callerOf(ctx).name;
  const { to } = await makeChange(audit, {
    who,
    action: untilMs === null ? 'cache.maintenance.off' : 'cache.maintenance.on',
    target: 'store',
    asked: untilMs === null ? null : { until: iso(untilMs) },
    make: () => (untilMs === null ? maintenance.end() : maintenance.begin(untilMs, who)),
    note: ({ from, to: then }) => {
      if (from === null && then === null) return null;
      // If it was on already, only its end has moved.
      const moved = from !== null && then !== null ? { action: 'cache.maintenance.move' } : {};
      return { ...moved, from: auditedMaintenance(from), to: auditedMaintenance(then) };
    },
  });
  return maintenanceView(to, clock);
}

function auditedMaintenance(maintenance: Maintenance | null): object | null {
  return maintenance && { until: iso(maintenance.untilMs), by: maintenance.by };
}

/** The end that a body asks for, in Unix milliseconds. Throws AdminError 400. */
async function readMaintenanceEnd(ctx: EndpointContext, clock: Clock): Promise<number> {
  const { for: forMs, until: untilMs } = await readBody(ctx, maintenanceBody());
  const allowed = ALLOWED_MAINTENANCE;
  const nowMs = clock.nowMs();
  if (forMs !== undefined && untilMs === undefined) return nowMs + forMs;
  if (forMs !== undefined || untilMs === undefined) {
    const given = forMs === undefined ? 'neither for nor until' : 'both for and until';
    throw faulty([`the body: holds ${given}; allowed: one of them: for: ${allowed.for}; until: ${allowed.until}`]);
  }
  if (untilMs > nowMs && untilMs - nowMs <= MAX_MAINTENANCE_MS) return untilMs;
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
