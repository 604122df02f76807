/** Trials of a time in a running gateway: what ends them by itself is audited, counted and logged as what an operator does. */
import type { Audit } from './admin/audit.ts';
import type { Metrics } from './admin/metrics/recorders.ts';
import type { TrialHooks } from './cache/trial/conclusions.ts';
import type { CountsBoard } from './cache/trial/figures.ts';
import type { TrialsHere } from './cache/trial/here.ts';
import type { TrialLedger } from './cache/trial/ledger.ts';
import { predictedAt } from './cache/trial/predict.ts';
import type { EndedTrial, Trial } from './cache/trial/trial.ts';
import { Trials } from './cache/trial/trials.ts';
import type { AdjustableTimes } from './cache/times.ts';
import type { WhatIf } from './cache/what-if/what-if.ts';
import type { Clock } from './clock.ts';
import { formatDuration } from './duration.ts';
import type { Logger } from './log/logger.ts';
import type { Members } from './redis/members.ts';
import type { StoreSource } from './store-source.ts';
import { systemTimers } from './timers.ts';

/** Who is named in the audit for what no operator did. */
export const BY_ITSELF = 'evalgate';
/** What that is called there when a trial has done harm. */
export const ROLLBACK = 'cache.trial.rollback';

export interface TrialsOptions {
  readonly trials: TrialsHere;
  readonly times: AdjustableTimes;
  readonly source: Pick<StoreSource, 'store'>;
  readonly metrics: Pick<Metrics, 'trialRolledBack'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface TrialsFleet {
  readonly ledger: TrialLedger;
  /** Null for a gateway that is alone. */
  readonly board: CountsBoard | null;
  readonly members: Pick<Members, 'id' | 'peers'>;
  readonly whatIf: Pick<WhatIf, 'reports'>;
  readonly audit: Audit;
}

export function openTrials(options: TrialsOptions, fleet: TrialsFleet): Trials {
  const { times, source, clock } = options;
  const { members, whatIf, ledger, board } = fleet;
  return new Trials({
    here: options.trials,
    ledger,
    board,
    times,
    predict: async (cacheClass, each) => {
      const snapshots = (await whatIf.reports()).map(({ snapshot }) => snapshot);
      return each.map((freshMs) => predictedAt(snapshots, cacheClass, freshMs));
    },
    isBreakerOpen: () => source.store.status().isOpen,
    // The first of all: should it go, the next one is known within seconds.
    isJudge: () => members.peers()[0] === members.id,
    self: members.id,
    clock,
    timers: systemTimers,
    hooks: hooksOf(options, fleet.audit),
  });
}

/** Redis ran it in this process and knows of it no more. */
export function logLost(logger: Logger): (trial: Trial) => void {
  return (trial) =>
    logger.warn(
      { trial: about(trial) },
      'Redis has forgotten a trial of a time: its keys are back at the time in force',
    );
}

function hooksOf({ metrics, logger }: TrialsOptions, audit: Audit): TrialHooks {
  return {
    onOver: (trial) => {
      const { class: cacheClass, end } = trial;
      const isBack = end.state === 'rolled-back';
      if (isBack) metrics.trialRolledBack({ class: cacheClass, reason: end.cause ?? 'store-load' });
      void audit.record({
        who: BY_ITSELF,
        action: isBack ? ROLLBACK : 'cache.trial.end',
        target: cacheClass,
        from: about(trial),
        to: isBack ? { cause: end.cause, reason: end.reason } : null,
      });
    },
    onAlone: (trial: EndedTrial) =>
      logger.warn(
        { trial: about(trial), reason: trial.end.reason },
        'a trial of a time went back in this process alone: the others cannot be told yet',
      ),
  };
}

function about({ id, class: cacheClass, freshMs, share }: Trial): object {
  return { id, class: cacheClass, fresh: formatDuration(freshMs), share };
}
