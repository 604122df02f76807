/** /api/cache/ttl: the times in force, where each comes from, and changing them while the gateway runs. */
import { isDeepStrictEqual } from 'node:util';
import type { TimesControl } from '../cache/times-control.ts';
import { type AdjustableTimes, CACHE_CLASSES, type CacheClass, type CacheTimes } from '../cache/times.ts';
import { formatDuration } from '../duration.ts';
import { attempt, type AttemptedChange } from './attempt.ts';
import type { Audit, AuditEntry } from './audit.ts';
import { BODY_LIMIT_BYTES, readJson } from './body.ts';
import { timesOf } from './cache-rules.ts';
import { callerOf, type EndpointContext } from './context.ts';
import type { Endpoint } from './endpoint.ts';
import { AdminError } from './errors.ts';

const TIME_NAMES = ['fresh', 'stale', 'error'] as const;

/** The three times of a class, as the interface calls them. */
type TimeName = (typeof TIME_NAMES)[number];

/** Where the configuration has a value from. */
type ConfiguredBy = 'default' | 'file' | 'environment';

export interface TimesEndpointOptions {
  /** What this process goes by. */
  readonly times: Pick<AdjustableTimes, 'of' | 'setOf'>;
  /** Changes it, here and in all other processes of the fleet. */
  readonly timesControl: TimesControl;
  readonly configuredBy: (cacheClass: CacheClass, time: TimeName) => ConfiguredBy;
  readonly audit: Audit;
}

/** What makes a change in the audit. */
const SET = 'cache.ttl.set';
const RESET = 'cache.ttl.reset';

export function timesEndpoints(options: TimesEndpointOptions): readonly Endpoint[] {
  const { timesControl, audit } = options;
  const one = '/api/cache/ttl/:class';
  return [
    {
      method: 'GET',
      path: '/api/cache/ttl',
      what: 'the times in force of each class of answers, and where each comes from',
      handle: async (ctx) => {
        const entries = await audit.entries();
        ctx.body = { classes: CACHE_CLASSES.map((cacheClass) => viewOfTimes(cacheClass, entries, options)) };
      },
    },
    {
      method: 'PUT',
      path: one,
      what: 'set times of a class; they rule at once, for stored answers too',
      handle: async (ctx) => {
        const cacheClass = classOf(ctx);
        const wanted = timesOf(await readJson(ctx, BODY_LIMIT_BYTES));
        const run = () => timesControl.set(cacheClass, wanted);
        await change(ctx, { cacheClass, action: SET, asked: askedTimes(wanted), run }, options);
      },
    },
    {
      method: 'DELETE',
      path: one,
      what: 'let the times of a class be those of the configuration again',
      handle: async (ctx) => {
        const cacheClass = classOf(ctx);
        const run = () => timesControl.reset(cacheClass);
        await change(ctx, { cacheClass, action: RESET, asked: null, run }, options);
      },
    },
  ];
}

/** The class of the path. Throws AdminError 404 where there is none of that name. */
function classOf({ params }: EndpointContext): CacheClass {
  const named = CACHE_CLASSES.find((cacheClass) => cacheClass === params['class']);
  if (named !== undefined) return named;
  throw new AdminError(404, `The path names no class of answers. The classes are ${CACHE_CLASSES.join(', ')}.`, {
    privateMessage: 'no such cache class',
  });
}

interface Change extends Pick<AttemptedChange, 'action' | 'asked'> {
  readonly cacheClass: CacheClass;
  readonly run: () => ReturnType<TimesControl['set']>;
}

/** Makes the change and answers with the class as it is then. What was so already is no change: it may be repeated. */
async function change(
  ctx: EndpointContext,
  { cacheClass, action, asked, run }: Change,
  options: TimesEndpointOptions,
): Promise<void> {
  const { times, audit } = options;
  const setBefore = times.setOf(cacheClass);
  const about = { who: callerOf(ctx), action, target: cacheClass };
  const { from, to } = await attempt(audit, { ...about, asked }, run);
  const before = auditedTimes(from, setBefore);
  const after = auditedTimes(to, times.setOf(cacheClass));
  if (!isDeepStrictEqual(before, after)) {
    await audit.record({ ...about, from: before, to: after });
  }
  ctx.body = viewOfTimes(cacheClass, await audit.entries(), options);
}

/** As the interface writes them; only those that are to be set. */
function askedTimes(wanted: Partial<CacheTimes>): object {
  const given = TIME_NAMES.filter((name) => isSet(name, wanted));
  return Object.fromEntries(given.map((name) => [name, formatDuration(wanted[`${name}Ms`] ?? 0)]));
}

/** The times in force, and the names of those among them that were set. */
function auditedTimes(inForce: CacheTimes, set: Partial<CacheTimes>): object {
  return { ...writtenTimes(inForce), set: TIME_NAMES.filter((name) => isSet(name, set)) };
}

/**
 * A class as the interface shows it: each time as text, in milliseconds, and with where it comes from. `entries` are the
 * audit's.
 */
export function viewOfTimes(
  cacheClass: CacheClass,
  entries: readonly AuditEntry[],
  { times, configuredBy }: Pick<TimesEndpointOptions, 'times' | 'configuredBy'>,
): object {
  const inForce = times.of(cacheClass);
  const set = times.setOf(cacheClass);
  const sourceOf = (name: TimeName): 'set' | ConfiguredBy =>
    isSet(name, set) ? 'set' : configuredBy(cacheClass, name);
  const isAnySet = TIME_NAMES.some((name) => isSet(name, set));
  // The newest comes first. Null where it is so old that the audit doesn't keep it any more.
  const last = isAnySet ? entries.find(({ action, target }) => action === SET && target === cacheClass) : undefined;
  return {
    class: cacheClass,
    ...writtenTimes(inForce),
    freshMs: inForce.freshMs,
    staleMs: inForce.staleMs,
    errorMs: inForce.errorMs,
    source: { fresh: sourceOf('fresh'), stale: sourceOf('stale'), error: sourceOf('error') },
    setBy: last?.who ?? null,
    setAt: last?.at ?? null,
  };
}

function writtenTimes({ freshMs, staleMs, errorMs }: CacheTimes): Record<TimeName, string> {
  return { fresh: formatDuration(freshMs), stale: formatDuration(staleMs), error: formatDuration(errorMs) };
}

function isSet(name: TimeName, set: Partial<CacheTimes>): boolean {
  return set[`${name}Ms`] !== undefined;
}
