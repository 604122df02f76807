/** /api/cache/ttl: the times in force, where each comes from, and changing them while the gateway runs. */
import { isDeepStrictEqual } from 'node:util';
import type { TimesControl } from '../cache/times-control.ts';
import { type AdjustableTimes, CACHE_CLASSES, type CacheClass, type CacheTimes } from '../cache/times.ts';
import type { TrialControl } from '../cache/trial/control.ts';
import { formatDuration } from '../duration.ts';
import { attempt, type AttemptedChange } from './attempt.ts';
import type { Audit, AuditEntry } from './audit.ts';
import { BODY_LIMIT_BYTES, readJson } from './body.ts';
import { timesOf } from './cache-rules.ts';
import { briefOfTrial } from './cache-trial-view.ts';
import { classOf } from './class-of-path.ts';
import { callerOf } from './context.ts';
import type { Endpoint, EndpointContext } from './endpoint.ts';

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
  readonly trials: Pick<TrialControl, 'running'>;
  readonly configuredBy: (cacheClass: CacheClass, time: TimeName) => ConfiguredBy;
  readonly audit: Audit;
}

/** What makes a change in the audit. */
export const TIMES_SET = 'cache.ttl.set';
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
        ctx.body = { classes: CACHE_CLASSES.map((cacheClass) => viewOfTimes({ class: cacheClass }, entries, options)) };
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
        await change(ctx, { cacheClass, action: TIMES_SET, asked: askedTimes(wanted), run }, options);
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
  ctx.body = viewOfTimes({ class: cacheClass }, await audit.entries(), options);
}

/** As the interface writes them; only those that are to be set. */
function askedTimes(wanted: Partial<CacheTimes>): object {
  const given = TIME_NAMES.filter((name) => isSet(name, wanted));
  return Object.fromEntries(given.map((name) => [name, formatDuration(wanted[`${name}Ms`] ?? 0)]));
}

/** The times in force, and the names of those among them that were set. */
export function auditedTimes(inForce: CacheTimes, set: Partial<CacheTimes>): object {
  return { ...writtenTimes(inForce), set: TIME_NAMES.filter((name) => isSet(name, set)) };
}

/** What of an explanation bears on the times that are shown. */
export interface Shown {
  readonly class: CacheClass;
  /** Of one key that a trial has; left out for what rules the class. */
  readonly tried?: CacheTimes;
}

/**
 * A class as the interface shows it: each time as text, in milliseconds, and with where it comes from. `entries` are the
 * audit's.
 */
export function viewOfTimes(
  { class: cacheClass, tried }: Shown,
  entries: readonly AuditEntry[],
  { times, trials, configuredBy }: Pick<TimesEndpointOptions, 'times' | 'trials' | 'configuredBy'>,
): object {
  const inForce = tried ?? times.of(cacheClass);
  const set = times.setOf(cacheClass);
  const sourceOf = (name: TimeName): 'set' | ConfiguredBy =>
    isSet(name, set) ? 'set' : configuredBy(cacheClass, name);
  const isAnySet = TIME_NAMES.some((name) => isSet(name, set));
  // The newest comes first. Null where it is so old that the audit doesn't keep it any more.
  const last = isAnySet
    ? entries.find(({ action, target }) => action === TIMES_SET && target === cacheClass)
    : undefined;
  const trial = trials.running().find((each) => each.class === cacheClass);
  return {
    class: cacheClass,
    ...writtenTimes(inForce),
    freshMs: inForce.freshMs,
    staleMs: inForce.staleMs,
    errorMs: inForce.errorMs,
    source: {
      fresh: tried === undefined ? sourceOf('fresh') : 'trial',
      stale: sourceOf('stale'),
      error: sourceOf('error'),
    },
    setBy: last?.who ?? null,
    setAt: last?.at ?? null,
    trial: trial === undefined ? null : briefOfTrial({ trial }),
  };
}

function writtenTimes({ freshMs, staleMs, errorMs }: CacheTimes): Record<TimeName, string> {
  return { fresh: formatDuration(freshMs), stale: formatDuration(staleMs), error: formatDuration(errorMs) };
}

function isSet(name: TimeName, set: Partial<CacheTimes>): boolean {
  return set[`${name}Ms`] !== undefined;
}
