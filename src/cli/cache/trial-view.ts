/** Trials of a time as the admin listener tells them, and as text for people. */
import { z } from 'zod';
import { columns, printable } from '../table.ts';
import { percentText } from './chart.ts';
import { shortDuration } from './view.ts';

const ratio = z.number().nullable();
const armSchema = z.looseObject({
  fresh: z.string(),
  freshMs: z.number(),
  reads: z.number(),
  hitRatio: ratio,
  storeCalls: z.number(),
  storeFailures: z.number(),
  storeCallsPerRead: ratio,
  storeFailureRatio: ratio,
});
const predictedSchema = z.looseObject({ hitRatio: z.number(), storeCallsPerRead: z.number() }).nullable();

export const trialSchema = z.looseObject({
  class: z.string(),
  state: z.enum(['running', 'ended', 'stopped', 'rolled-back', 'adopted']),
  reason: z.string().nullable(),
  fresh: z.string(),
  share: z.number(),
  startedAt: z.string(),
  startedBy: z.string(),
  until: z.iso.datetime(),
  endedAt: z.string().nullable(),
  limits: z.looseObject({ maxStoreLoad: z.number(), maxErrors: z.number() }),
  arms: z.looseObject({ trial: armSchema, control: armSchema }),
  predicted: z.looseObject({ trial: predictedSchema, control: predictedSchema }),
});

export type Trial = z.output<typeof trialSchema>;
type Arm = z.output<typeof armSchema>;
type Predicted = z.output<typeof predictedSchema>;

/** How trials are shown: at which moment, and what a line that is offered has to repeat. */
export interface Showing {
  /** Unix milliseconds. */
  readonly nowMs: number;
  /** Of adminPart. */
  readonly admin: string;
}

/** Those that run in full, and a line each for those that are over. */
export function trialsText(trials: readonly Trial[], showing: Showing): string {
  if (trials.length === 0) {
    const line = `evalgate cache trial start list --fresh 60s --share 10% --for 1h${showing.admin}`;
    return `There was no trial yet. To begin one: ${line}`;
  }
  const running = trials.filter(isRunning);
  const over = trials.filter((trial) => !isRunning(trial));
  return [
    ...(running.length === 0 ? ['No trial runs.'] : running.map((trial) => trialText(trial, showing))),
    ...(over.length === 0 ? [] : [`Over, newest first\n${overTable(over)}`]),
  ].join('\n\n');
}

/** One trial: how it stands, what was measured beside what was predicted, and what can be done. */
export function trialText(trial: Trial, showing: Showing): string {
  return [headline(trial, showing.nowMs), ...about(trial), armTable(trial), ...offered(trial, showing.admin)].join(
    '\n',
  );
}

export function isRunning({ state }: Pick<Trial, 'state'>): boolean {
  return state === 'running';
}

const ENDS: Readonly<Record<Exclude<Trial['state'], 'running'>, string>> = {
  ended: 'ended',
  stopped: 'was stopped',
  'rolled-back': 'was rolled back',
  adopted: 'was adopted for all keys',
};

function headline({ class: cacheClass, fresh, share, state, until, endedAt }: Trial, nowMs: number): string {
  const what = `${printable(cacheClass)}: fresh ${printable(fresh)} for ${shareText(share)} of the keys`;
  if (state !== 'running') return `${what} ${ENDS[state]} at ${printable(endedAt ?? '?')}.`;
  const leftMs = Date.parse(until) - nowMs;
  // By this machine's clock, which may be ahead of the gateway's.
  const left = leftMs > 0 ? `${shortDuration(wholeSeconds(leftMs))} left` : 'about to end';
  return `${what}, ${left}, until ${until}.`;
}

function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000) * 1000;
}

function about(trial: Trial): readonly string[] {
  const { state, reason, startedAt, startedBy } = trial;
  return [
    // Of one that runs the reason tells why it can't be judged yet.
    ...(reason === null ? [] : [`${state === 'running' ? '' : 'Why: '}${printable(reason)}`]),
    `Started at ${printable(startedAt)} by ${printable(startedBy)}.`,
    ...(state === 'running' ? [limitsText(trial)] : []),
  ];
}

function limitsText({ arms: { trial, control }, limits: { maxStoreLoad, maxErrors } }: Trial): string {
  // A shorter time is expected to cost more.
  const beside = trial.freshMs < control.freshMs ? 'what is predicted' : "control's";
  return `Goes back by itself when its store calls per read are clearly above ${maxStoreLoad} times ${beside}, or ${shareText(maxErrors)} more of them fail than of control's.`;
}

const HEADING = ['ARM', 'FRESH', 'READS', 'HIT RATIO', 'PREDICTED', 'STORE CALLS/READ', 'PREDICTED', 'STORE CALLS'];

function armTable({ arms, predicted }: Trial): string {
  return columns([
    [...HEADING, 'FAILED'],
    armCells('trial', arms.trial, predicted.trial),
    armCells('control', arms.control, predicted.control),
  ]);
}

function armCells(name: string, arm: Arm, predicted: Predicted): string[] {
  const failed = arm.storeFailureRatio === null ? '' : ` (${percentText(arm.storeFailureRatio)})`;
  return [
    name,
    arm.fresh,
    String(arm.reads),
    ratioText(arm.hitRatio),
    ratioText(predicted?.hitRatio ?? null),
    perReadText(arm.storeCallsPerRead),
    perReadText(predicted?.storeCallsPerRead ?? null),
    String(arm.storeCalls),
    `${arm.storeFailures}${failed}`,
  ];
}

function ratioText(value: number | null): string {
  return value === null ? '-' : percentText(value);
}

function perReadText(value: number | null): string {
  if (value === null) return '-';
  return value > 0 && value < 0.001 ? '<0.001' : value.toFixed(3);
}

/** A share that somebody chose, as they would write it: `10%`, `2.5%`. */
function shareText(share: number): string {
  return `${Number((share * 100).toFixed(4))}%`;
}

function offered({ class: cacheClass, state }: Trial, admin: string): readonly string[] {
  const name = printable(cacheClass);
  const adopt = `To let it rule for all keys: evalgate cache trial adopt ${name}${admin}`;
  if (state === 'running') return [adopt, `To go back now: evalgate cache trial stop ${name}${admin}`];
  return state === 'ended' ? [adopt] : [];
}

function overTable(trials: readonly Trial[]): string {
  return columns([
    ['CLASS', 'FRESH', 'INSTEAD OF', 'SHARE', 'STATE', 'ENDED AT', 'HIT RATIO', 'CONTROL', 'WHY'],
    ...trials.map(({ class: cacheClass, fresh, share, state, endedAt, reason, arms }) => [
      cacheClass,
      fresh,
      arms.control.fresh,
      shareText(share),
      state,
      endedAt ?? '-',
      ratioText(arms.trial.hitRatio),
      ratioText(arms.control.hitRatio),
      reason ?? '-',
    ]),
  ]);
}
