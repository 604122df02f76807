/** /api/cache/ttl: the TTLs in force, where each comes from, and changing them, for good or for a while. */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
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
import { formatDuration, parseDuration } from '../duration.ts';
import { attempt, type AttemptedChange } from './attempt.ts';
import type { Audit, AuditedChange, AuditEntry } from './audit.ts';
import { BODY_LIMIT_BYTES, readJson } from './body.ts';
import { callerOf, type EndpointContext } from './context.ts';
import type { Endpoint } from './endpoint.ts';
import { AdminError } from './errors.ts';
import { type BodyRules, faulty, mustBe } from './faults.ts';

const NAMES = ['fresh', 'stale', 'error'] as const;

/** The three TTLs of a class, as the interface calls them. */
type Name = (typeof NAMES)[number];

/** Where a configured value comes from. */
type ConfiguredBy = 'default' | 'file' | 'environment';

export interface TtlEndpointsOptions {
  /** This process's. */
  readonly times: Pick<TtlPolicy, 'stateOf'>;
  /** Changes TTLs in every process. */
  readonly timesControl: TtlControl;
  readonly configuredBy: (cacheClass: CacheClass, name: Name) => ConfiguredBy;
  readonly audit: Audit;
  readonly clock: Clock;
}

/** The configuration allows it too: a TTL that may be written there may be set as well. */
export const LONGEST_TTL_MS = 365 * 86_400_000;
/** How long a TTL may be set for. For longer it belongs into the configuration. */
export const SHORTEST_FOR_MS = 60_000;
export const LONGEST_FOR_MS = 7 * 86_400_000;

const SET = 'cache.ttl.set';
const RESET = 'cache.ttl.reset';
const END = 'cache.ttl.end';
const ALLOWED = 'a duration from 0s to 365d, such as 250ms, 30s, 5m, 2h or 7d';

function duration(fromMs: number, toMs: number) {
  return z
    .string()
    .transform((text) => parseDuration(text) ?? Number.NaN)
    .refine((ms) => ms >= fromMs && ms <= toMs)
    .optional();
}

interface WantedTtl {
  readonly ttl: Partial<CacheTtl>;
  /** Null: for good. */
  readonly forMs: number | null;
}

const ttl = duration(0, LONGEST_TTL_MS);
const WANTED: BodyRules<WantedTtl> = {
  schema: z
    .strictObject({ fresh: ttl, stale: ttl, error: ttl, for: duration(SHORTEST_FOR_MS, LONGEST_FOR_MS) })
    .transform(({ fresh, stale, error, for: forMs = null }) => ({
      ttl: {
        ...(fresh === undefined ? {} : { freshMs: fresh }),
        ...(stale === undefined ? {} : { staleMs: stale }),
        ...(error === undefined ? {} : { errorMs: error }),
      },
      forMs,
    })),
  allowed: {
    fresh: ALLOWED,
    stale: ALLOWED,
    error: ALLOWED,
    for: 'a duration from 1m to 7d, such as 30m, 2h or 1d; without it what is set stays until it is reset',
  },
};

export function ttlEndpoints(options: TtlEndpointsOptions): readonly Endpoint[] {
  const { timesControl, audit, clock } = options;
  const one = '/api/cache/ttl/:class';
  return [
    {
      method: 'GET',
      path: '/api/cache/ttl',
      what: 'the TTLs in force of each class of answers, where each comes from, and until when',
      handle: async (ctx) => {
        const entries = await audit.entries();
        ctx.body = { classes: CACHE_CLASSES.map((cacheClass) => viewOfTtl(cacheClass, entries, options)) };
      },
    },
    {
      method: 'PUT',
      path: one,
      what: 'set TTLs of a class, with `for` only for a while; they rule at once, for stored answers too',
      handle: async (ctx) => {
        const cacheClass = classOf(ctx);
        const wanted = wantedOf(await readJson(ctx, BODY_LIMIT_BYTES));
        const untilMs = wanted.forMs === null ? null : clock.nowMs() + wanted.forMs;
        const run = () => timesControl.set(cacheClass, wanted.ttl, untilMs);
        await change(ctx, { cacheClass, action: SET, asked: askedTtl(wanted), forMs: wanted.forMs, run }, options);
      },
    },
    {
      method: 'DELETE',
      path: one,
      what: 'let the TTLs of a class be those of the configuration again',
      handle: async (ctx) => {
        const cacheClass = classOf(ctx);
        const run = () => timesControl.reset(cacheClass);
        await change(ctx, { cacheClass, action: RESET, asked: null, forMs: null, run }, options);
      },
    },
  ];
}

/** The class of the path. Throws AdminError 404 if there is none of that name. */
function classOf({ params }: EndpointContext): CacheClass {
  const named = CACHE_CLASSES.find((cacheClass) => cacheClass === params['class']);
  if (named !== undefined) return named;
  throw new AdminError(404, `The path names no class of answers. The classes are ${CACHE_CLASSES.join(', ')}.`, {
    privateMessage: 'no such cache class',
  });
}

/** The TTLs that a body sets, at least one. Throws AdminError 400 with every fault. */
function wantedOf(body: unknown): WantedTtl {
  const wanted = mustBe(WANTED, body);
  if (Object.keys(wanted.ttl).length > 0) return wanted;
  throw faulty([`the body: sets no time; allowed: at least one of fresh, stale and error, each ${ALLOWED}`]);
}

interface Change extends Pick<AttemptedChange, 'action' | 'asked'> {
  readonly cacheClass: CacheClass;
  readonly forMs: number | null;
  readonly run: () => ReturnType<TtlControl['set']>;
}

/** Makes the change and answers with the class as it is then. If nothing changes, nothing is audited. */
async function change(
  ctx: EndpointContext,
  { cacheClass, action, asked, forMs, run }: Change,
  options: TtlEndpointsOptions,
): Promise<void> {
  const { audit } = options;
  const about = { who: callerOf(ctx), action, target: cacheClass };
  const { from, to } = await attempt(audit, { ...about, asked }, run);
  const [before, after] = [auditedTtl(from), auditedTtl(to)];
  if (!isDeepStrictEqual(before, after)) {
    const spell = forMs === null ? {} : { for: formatDuration(forMs) };
    await audit.record({ ...about, from: before, to: { ...after, ...spell } });
  }
  ctx.body = viewOfTtl(cacheClass, await audit.entries(), options);
}

/** As the interface writes them; only those that are to be set. */
function askedTtl({ ttl: wanted, forMs }: WantedTtl): object {
  const given = NAMES.filter((name) => wanted[`${name}Ms`] !== undefined);
  return {
    ...Object.fromEntries(given.map((name) => [name, formatDuration(wanted[`${name}Ms`] ?? 0)])),
    ...(forMs === null ? {} : { for: formatDuration(forMs) }),
  };
}

/** The TTLs in force, the names of those that are set, and the ends of those that have one. */
function auditedTtl({ ttl: inForce, set }: TtlState): object {
  const ends = NAMES.flatMap((name) => {
    const untilMs = set[`${name}Ms`] ?? null;
    return untilMs === null ? [] : [[name, iso(untilMs)] as const];
  });
  return {
    ...writtenTtl(inForce),
    set: NAMES.filter((name) => set[`${name}Ms`] !== undefined),
    ...(ends.length === 0 ? {} : { ends: Object.fromEntries(ends) }),
  };
}

/** The audit's entry for TTLs that have ended by themselves. */
export function ttlEndEntry({ cacheClass, from, to }: TtlEnd): AuditedChange {
  return { who: 'evalgate', action: END, target: cacheClass, from: auditedTtl(from), to: auditedTtl(to) };
}

/**
 * A class as the interface shows it: each TTL as text, in milliseconds, where it comes from, until when it is in force
 * and which one is in force then. `entries` are the audit's.
 */
export function viewOfTtl(
  cacheClass: CacheClass,
  entries: readonly AuditEntry[],
  { times, configuredBy }: Pick<TtlEndpointsOptions, 'times' | 'configuredBy'>,
): object {
  const { ttl: inForce, set, afterwards } = times.stateOf(cacheClass);
  const each = <T>(view: (name: Name, untilMs: number | null | undefined) => T): Record<Name, T> => ({
    fresh: view('fresh', set.freshMs),
    stale: view('stale', set.staleMs),
    error: view('error', set.errorMs),
  });
  const last = lastSet(cacheClass, Object.values(set), entries);
  return {
    class: cacheClass,
    ...writtenTtl(inForce),
    ...inForce,
    source: each((name, untilMs) => (untilMs === undefined ? configuredBy(cacheClass, name) : 'set')),
    until: each((_, untilMs) => (typeof untilMs === 'number' ? iso(untilMs) : null)),
    afterwards: each((name, untilMs) => (typeof untilMs === 'number' ? formatDuration(afterwards[`${name}Ms`]) : null)),
    setBy: last?.who ?? null,
    setAt: last?.at ?? null,
  };
}

function isForAWhile({ to }: AuditEntry): boolean {
  return typeof to === 'object' && to !== null && 'for' in to;
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
    (entry) => entry.action === SET && entry.target === cacheClass && (isAnyToEnd || !isForAWhile(entry)),
  );
}

function writtenTtl({ freshMs, staleMs, errorMs }: CacheTtl): Record<Name, string> {
  return { fresh: formatDuration(freshMs), stale: formatDuration(staleMs), error: formatDuration(errorMs) };
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
