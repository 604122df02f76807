/** Everything that the sample can be told to do wrong, as a real store does it. */
import type { Random } from './random.ts';

export interface Faults {
  /** 500. */
  readonly errorRate: number;
  /** Always this status, 400 to 599; null is none. */
  readonly status: number | null;
  /** Seconds for `Retry-After` on statuses of 429 and above; null is none. */
  readonly retryAfter: number | null;
  readonly hangRate: number;
  readonly resetRate: number;
  readonly htmlRate: number;
  readonly truncateRate: number;
  readonly deepRate: number;
  readonly wrongIdRate: number;
  readonly wrongWorkspaceRate: number;
  readonly endless: boolean;
  readonly gzipBomb: boolean;
  readonly slowDrip: boolean;
  readonly redirect: boolean;
}

export const NO_FAULTS: Faults = {
  errorRate: 0,
  status: null,
  retryAfter: null,
  hangRate: 0,
  resetRate: 0,
  htmlRate: 0,
  truncateRate: 0,
  deepRate: 0,
  wrongIdRate: 0,
  wrongWorkspaceRate: 0,
  endless: false,
  gzipBomb: false,
  slowDrip: false,
  redirect: false,
};

/** `rate` is 0 to 1, `status` 400 to 599, `seconds` an integer from 0 to 86,400, and a `switch` is on or off. */
export type FaultKind = 'rate' | 'status' | 'seconds' | 'switch';
export interface FaultOption {
  readonly name: keyof Faults;
  readonly flag: string;
  readonly description: string;
  readonly kind: FaultKind;
}

/** One command-line flag a fault. */
export const FAULT_OPTIONS: readonly FaultOption[] = [
  option('errorRate', 'rate', 'share of calls answered with 500'),
  option('status', 'status', 'answer every call with this status'),
  option('retryAfter', 'seconds', 'send Retry-After with failures of status 429 and above'),
  option('hangRate', 'rate', 'share of calls that stop half-way through the body and never end'),
  option('resetRate', 'rate', 'share of calls whose connection is reset before an answer'),
  option('htmlRate', 'rate', 'share of calls answered with 200 and an HTML page'),
  option('truncateRate', 'rate', 'share of calls answered with 200 and JSON that is cut off'),
  option('deepRate', 'rate', 'share of calls answered with 200 and JSON nested 20,000 deep'),
  option('wrongIdRate', 'rate', 'share of calls answered with the record of another id'),
  option('wrongWorkspaceRate', 'rate', 'share of calls answered with a record of another workspace'),
  option('endless', 'switch', 'answer every call with a body that never ends'),
  option('gzipBomb', 'switch', 'answer every call with 100 kB of gzip that unpack to 100 MB'),
  option('slowDrip', 'switch', 'send every body a few bytes at a time'),
  option('redirect', 'switch', 'answer every call with a redirect'),
];

function option(name: keyof Faults, kind: FaultKind, description: string): FaultOption {
  return { name, flag: `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`, description, kind };
}

/** A fault that was given a value it can't have. The message names the flag, the value and what is allowed. */
export class FaultOptionError extends Error {
  override readonly name = 'FaultOptionError';
}

/**
 * Reads faults by their names from what a command line or a test gives: numbers, numbers as text, booleans. Names that
 * are no faults are passed over, as a command has other options too.
 * Throws a FaultOptionError.
 */
export function parseFaults(given: Readonly<Record<string, unknown>>): Faults {
  const values = FAULT_OPTIONS.flatMap((known) => {
    const value = given[known.name];
    return value === undefined ? [] : [[known.name, parseValue(known, value)] as const];
  });
  return { ...NO_FAULTS, ...Object.fromEntries(values) };
}

const RANGES = {
  rate: { min: 0, max: 1, isInteger: false, allowed: 'a number from 0 to 1' },
  status: { min: 400, max: 599, isInteger: true, allowed: 'an integer from 400 to 599' },
  seconds: { min: 0, max: 86_400, isInteger: true, allowed: 'an integer from 0 to 86400' },
} as const;

function parseValue({ flag, kind }: FaultOption, given: unknown): number | boolean {
  const refuse = (allowed: string): never => {
    throw new FaultOptionError(`${flag}: ${JSON.stringify(given)} is not allowed, it must be ${allowed}`);
  };
  if (kind === 'switch') return typeof given === 'boolean' ? given : refuse('given without a value');
  const { min, max, isInteger, allowed } = RANGES[kind];
  const value = typeof given === 'string' && /^\d+(?:\.\d+)?$/.test(given) ? Number(given) : given;
  const isRight = typeof value === 'number' && value >= min && value <= max && (!isInteger || Number.isInteger(value));
  return isRight ? value : refuse(allowed);
}

/** What is done with one call: at most one fault that replaces the answer, and what is done to an answer. */
export interface FaultPlan {
  readonly instead: 'none' | 'status' | 'reset' | 'redirect' | 'endless' | 'gzipBomb' | 'html' | 'deep';
  /** With `instead: 'status'`. */
  readonly status: number;
  readonly retryAfter: number | null;
  readonly body: 'whole' | 'hang' | 'truncate' | 'slowDrip';
  readonly wrong: 'none' | 'id' | 'workspace';
}

/** Decides on one call. Switches come before rates, and of the rates the first that hits. */
export function planFault(faults: Faults, random: Random): FaultPlan {
  const hits = (rate: number): boolean => rate > 0 && random.chance(rate);
  return {
    instead: planInstead(faults, hits),
    status: faults.status ?? 500,
    retryAfter: faults.retryAfter,
    body: hits(faults.hangRate)
      ? 'hang'
      : hits(faults.truncateRate)
        ? 'truncate'
        : faults.slowDrip
          ? 'slowDrip'
          : 'whole',
    wrong: hits(faults.wrongIdRate) ? 'id' : hits(faults.wrongWorkspaceRate) ? 'workspace' : 'none',
  };
}

function planInstead(faults: Faults, hits: (rate: number) => boolean): FaultPlan['instead'] {
  if (faults.status !== null) return 'status';
  if (faults.redirect) return 'redirect';
  if (faults.endless) return 'endless';
  if (faults.gzipBomb) return 'gzipBomb';
  if (hits(faults.resetRate)) return 'reset';
  if (hits(faults.errorRate)) return 'status';
  if (hits(faults.htmlRate)) return 'html';
  return hits(faults.deepRate) ? 'deep' : 'none';
}
