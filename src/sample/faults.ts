/** What the sample can be made to do wrong, as a real store does it: the switches, and which fault a call meets. */
import { MISBEHAVIOURS, type Misbehaviour } from './misbehave.ts';
import type { Random } from './random.ts';

export interface Faults {
  readonly errorRate: number;
  /** Always this status, 400 to 599; null is none. */
  readonly status: number | null;
  /** Seconds for `Retry-After` on statuses of 429 and above; null is none. */
  readonly retryAfter: number | null;
  /** Always this way; null is none. */
  readonly misbehave: Misbehaviour | null;
  /** How many calls at a time it bears; null is any number. */
  readonly capacity: number | null;
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
  misbehave: null,
  capacity: null,
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

/** What a call meets: a status, or a way to misbehave. */
export type Fault = number | Misbehaviour;

type FaultKind = 'rate' | 'status' | 'seconds' | 'calls' | 'way' | 'switch';
export interface FaultOption {
  readonly name: keyof Faults;
  readonly flag: string;
  readonly description: string;
  readonly kind: FaultKind;
  /** What a call meets that the rate hits, or while the switch is on. */
  readonly fault: Fault | null;
}

/** One command-line flag per fault. Switches come before rates, and the first rate that hits counts. */
export const FAULT_OPTIONS: readonly FaultOption[] = [
  option('status', 'status', 'answer every call with this status'),
  option('retryAfter', 'seconds', 'send Retry-After with failures of status 429 and above'),
  option('capacity', 'calls', 'bear so many calls at a time: slower beyond it, 503 beyond four times as many'),
  option('misbehave', 'way', `misbehave in one way on every call: ${MISBEHAVIOURS.join(', ')}`),
  option('endless', 'switch', 'answer every call with a body that never ends', 'endless-body'),
  option('gzipBomb', 'switch', 'answer every call with gzip that unpacks to a thousand times its size', 'gzip-bomb'),
  option('slowDrip', 'switch', 'send every body a byte at a time', 'slow-body'),
  option('redirect', 'switch', 'answer every call with a redirect', 'redirect'),
  option('errorRate', 'rate', 'share of calls answered with 500', 500),
  option('hangRate', 'rate', 'share of calls that stop half-way through the body and never end', 'hang'),
  option('resetRate', 'rate', 'share of calls whose connection is reset before an answer', 'reset'),
  option('htmlRate', 'rate', 'share of calls answered with 200 and an HTML page', 'html'),
  option('truncateRate', 'rate', 'share of calls answered with 200 and JSON that is cut off', 'cut-off-json'),
  option('deepRate', 'rate', 'share of calls answered with 200 and JSON nested a million deep', 'deep-arrays'),
  option('wrongIdRate', 'rate', 'share of calls answered with the record of another id', 'wrong-id'),
  option('wrongWorkspaceRate', 'rate', 'share of calls answered with a record of another workspace', 'wrong-workspace'),
];

function option(name: keyof Faults, kind: FaultKind, description: string, fault: Fault | null = null): FaultOption {
  const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return { name, flag, description, kind, fault };
}

/** A fault that was given a value it can't have. The message names the flag, the value and what is allowed. */
export class FaultOptionError extends Error {
  override readonly name = 'FaultOptionError';
}

/**
 * Reads faults by their names from the options of a command line, and ignores all other options.
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
  calls: { min: 1, max: 10_000, isInteger: true, allowed: 'an integer from 1 to 10000' },
} as const;

function parseValue({ flag, kind }: FaultOption, given: unknown): number | boolean | string {
  const refuse = (allowed: string): never => {
    throw new FaultOptionError(`${flag}: ${JSON.stringify(given)} is not allowed, it must be ${allowed}`);
  };
  if (kind === 'switch') return typeof given === 'boolean' ? given : refuse('given without a value');
  if (kind === 'way') return MISBEHAVIOURS.find((way) => way === given) ?? refuse('one of the ways that --help lists');
  const { min, max, isInteger, allowed } = RANGES[kind];
  const value = typeof given === 'string' && /^\d+(?:\.\d+)?$/.test(given) ? Number(given) : given;
  const isRight = typeof value === 'number' && value >= min && value <= max && (!isInteger || Number.isInteger(value));
  return isRight ? value : refuse(allowed);
}

/** Decides on one call; null is a good answer. */
export function chooseFault(faults: Faults, random: Random): Fault | null {
  const isHit = ({ name, kind }: FaultOption): boolean => {
    const value = faults[name];
    return kind === 'rate' ? typeof value === 'number' && value > 0 && random.chance(value) : value === true;
  };
  return faults.status ?? faults.misbehave ?? FAULT_OPTIONS.find(isHit)?.fault ?? null;
}
