/** /api/cache/trials: another `fresh` for a share of a class's keys. Every change goes into the audit. */
import type { AdjustableTimes, CacheClass } from '../cache/times.ts';
import type { TrialControl, TrialView } from '../cache/trial/control.ts';
import type { Trial, TrialPlan } from '../cache/trial/trial.ts';
import { formatDuration } from '../duration.ts';
import { attempt } from './attempt.ts';
import type { Audit } from './audit.ts';
import { BODY_LIMIT_BYTES, readJson } from './body.ts';
import { auditedTimes, TIMES_SET } from './cache-times-endpoints.ts';
import { planOf } from './cache-trial-rules.ts';
import { viewOfTrial } from './cache-trial-view.ts';
import { classOf } from './class-of-path.ts';
import { callerOf } from './context.ts';
import type { Endpoint, EndpointContext } from './endpoint.ts';
import { AdminError } from './errors.ts';
import { faulty } from './faults.ts';

export interface TrialEndpointsOptions {
  readonly trials: TrialControl;
  /** What this process goes by. */
  readonly times: Pick<AdjustableTimes, 'of' | 'setOf'>;
  readonly audit: Audit;
}

const ALL = '/api/cache/trials';
const ONE = `${ALL}/:class`;

export function trialEndpoints(options: TrialEndpointsOptions): readonly Endpoint[] {
  return [...seeing(options), ...changing(options)];
}

function seeing({ trials }: TrialEndpointsOptions): readonly Endpoint[] {
  return [
    {
      method: 'GET',
      path: ALL,
      what: 'trials of a time, those that run first: what was measured of both arms, beside what was predicted',
      handle: async (ctx) => {
        ctx.body = { trials: (await trials.views()).map(viewOfTrial) };
      },
    },
    {
      method: 'GET',
      path: ONE,
      what: 'the trial of a class that runs, else its last one',
      handle: async (ctx) => {
        const cacheClass = classOf(ctx);
        const view = await trials.view(cacheClass);
        if (view === null) throw noneOf(404, cacheClass, 'There was no trial of this class yet.');
        ctx.body = viewOfTrial(view);
      },
    },
  ];
}

function changing(options: TrialEndpointsOptions): readonly Endpoint[] {
  return [
    {
      method: 'POST',
      path: ALL,
      what: 'try another fresh on a share of the keys of a class; it ends by itself, early where store load or errors rise',
      handle: (ctx) => start(ctx, options),
    },
    {
      method: 'DELETE',
      path: ONE,
      what: 'stop the trial of a class: its keys go back to the time in force at once',
      handle: (ctx) => stop(ctx, options),
    },
    {
      method: 'POST',
      path: `${ONE}/adopt`,
      what: 'set the time that is tried for all keys of the class, and end the trial',
      handle: (ctx) => adopt(ctx, options),
    },
  ];
}

async function start(ctx: EndpointContext, { trials, times, audit }: TrialEndpointsOptions): Promise<void> {
  const plan = planOf(await readJson(ctx, BODY_LIMIT_BYTES));
  if (plan.freshMs === times.of(plan.class).freshMs) throw nothingNew(plan);
  const about = { who: callerOf(ctx), action: 'cache.trial.start', target: plan.class };
  const asked = audited({ ...plan, for: formatDuration(plan.forMs) });
  const result = await attempt(audit, { ...about, asked }, () => trials.start(plan, callerOf(ctx)));
  if (result.kind === 'running') throw alreadyRuns(result.trial);
  const { trial } = result.view;
  await audit.record({
    ...about,
    from: null,
    to: { id: trial.id, ...audited({ ...trial, until: iso(trial.untilMs) }) },
  });
  ctx.status = 201;
  ctx.body = viewOfTrial(result.view);
}

async function stop(ctx: EndpointContext, { trials, audit }: TrialEndpointsOptions): Promise<void> {
  const cacheClass = classOf(ctx);
  const about = { who: callerOf(ctx), action: 'cache.trial.stop', target: cacheClass };
  const view = await attempt(audit, { ...about, asked: null }, () => trials.stop(cacheClass, callerOf(ctx)));
  if (view === null) throw noneOf(409, cacheClass, 'No trial of this class runs, so there is none to stop.');
  await audit.record({ ...about, from: auditedEnd(view), to: null });
  ctx.body = viewOfTrial(view);
}

async function adopt(ctx: EndpointContext, { trials, times, audit }: TrialEndpointsOptions): Promise<void> {
  const cacheClass = classOf(ctx);
  const about = { who: callerOf(ctx), action: 'cache.trial.adopt', target: cacheClass };
  const setBefore = times.setOf(cacheClass);
  const adopted = await attempt(audit, { ...about, asked: null }, () => trials.adopt(cacheClass, callerOf(ctx)));
  if (adopted === null) {
    const why = 'No trial of this class runs, and the last one, if there was any, has not ended by its time.';
    throw noneOf(409, cacheClass, `${why} PUT /api/cache/ttl/${cacheClass} sets any time.`);
  }
  const { view, times: change } = adopted;
  // Whoever asks who has set the class's time finds it where all such changes are.
  await audit.record({
    ...about,
    action: TIMES_SET,
    from: auditedTimes(change.from, setBefore),
    to: auditedTimes(change.to, times.setOf(cacheClass)),
  });
  await audit.record({ ...about, from: auditedEnd(view), to: { fresh: formatDuration(view.trial.freshMs) } });
  ctx.body = viewOfTrial(view);
}

interface Audited extends Pick<Trial, 'freshMs' | 'share' | 'limits'> {
  readonly for?: string;
  readonly until?: string;
}

function audited({ freshMs, share, limits, for: duration, until }: Audited): object {
  const end = until === undefined ? { for: duration } : { until };
  return { fresh: formatDuration(freshMs), share, ...end, ...limits };
}

/** What was measured by then: the audit outlives the trial. */
function auditedEnd({ trial, arms }: TrialView): object {
  const { trial: tried, control } = arms;
  const measured = (arm: typeof tried): object => ({
    fresh: formatDuration(arm.freshMs),
    reads: arm.reads,
    storeCalls: arm.storeCalls,
    storeFailures: arm.storeFailures,
  });
  return { id: trial.id, trial: measured(tried), control: measured(control) };
}

function nothingNew({ class: cacheClass, freshMs }: TrialPlan): AdminError {
  const given = formatDuration(freshMs);
  return faulty([`fresh: given "${given}", which is the time in force of ${cacheClass}; allowed: any other time`]);
}

function alreadyRuns({ class: cacheClass, freshMs, untilMs }: Trial): AdminError {
  const which = `fresh ${formatDuration(freshMs)}, until ${iso(untilMs)}`;
  return new AdminError(
    409,
    `A trial of ${cacheClass} runs already (${which}); a class has one at a time. DELETE ${ALL}/${cacheClass} stops it.`,
    { privateMessage: 'a trial of the class runs' },
  );
}

function noneOf(status: 404 | 409, cacheClass: CacheClass, message: string): AdminError {
  return new AdminError(status, `${message} GET ${ALL} lists all; POST ${ALL} begins one of ${cacheClass}.`, {
    privateMessage: 'no such trial',
  });
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
