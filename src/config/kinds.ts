/** The kinds of values that settings have: how each is read from what was written, and what is allowed in words. */
import { z } from 'zod';
import { DURATION_FORM, formatDuration, parseDuration } from '../duration.ts';

/** `schema` takes the value as written in YAML or in the environment (always a string there). */
export interface Kind<T> {
  readonly schema: z.ZodType<T>;
  readonly allowed: string;
}

/** Thrown by a parse function to say what exactly is wrong. The message is shown, so it must not quote a secret. */
export class ValueProblem extends Error {
  override readonly name = 'ValueProblem';
}

/** A schema of text that `parse` reads; it gives null, or throws a ValueProblem, where it cannot. */
export function textSchema<T>(parse: (text: string) => T | null): z.ZodType<T> {
  return readBy(z.string(), parse);
}

function readBy<I, T>(written: z.ZodType<I>, parse: (input: I) => T | null): z.ZodType<T> {
  return written.transform((input, context) => {
    try {
      const value = parse(input);
      if (value !== null) return value;
      context.addIssue({ code: 'custom' });
    } catch (error) {
      if (!(error instanceof ValueProblem)) throw error;
      context.addIssue({ code: 'custom', params: { problem: error.message } });
    }
    return z.NEVER;
  });
}

export function integer(min: number, max: number, note = ''): Kind<number> {
  const digits = z
    .string()
    .regex(/^\d{1,10}$/)
    .transform(Number);
  return {
    schema: z.union([z.number(), digits]).pipe(z.int().min(min).max(max)),
    allowed: `an integer from ${min} to ${max}${note}`,
  };
}

/** A limit on requests. */
export function limit(): Kind<number> {
  return integer(1, 1_000_000_000);
}

export function port(): Kind<number> {
  return integer(0, 65_535, ' (0 takes any free port)');
}

/** Milliseconds, written as a duration. */
export function duration(minMs: number, maxMs: number): Kind<number> {
  return {
    schema: textSchema(parseDuration).pipe(z.int().min(minMs).max(maxMs)),
    allowed: `${DURATION_FORM}, from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`,
  };
}

const SIZE_UNITS_BYTES: ReadonlyMap<string, number> = new Map([
  ['B', 1],
  ['kB', 1000],
  ['MB', 1_000_000],
  ['GB', 1_000_000_000],
]);

/** Bytes, written with a decimal unit. */
export function size(minBytes: number, maxBytes: number): Kind<number> {
  return {
    schema: textSchema(parseSize).pipe(z.int().min(minBytes).max(maxBytes)),
    allowed: `a size like 500kB, 64MB or 1GB (units of 1000), from ${formatSize(minBytes)} to ${formatSize(maxBytes)}`,
  };
}

function parseSize(text: string): number | null {
  const [, amount, unit = ''] = /^(\d{1,12})(B|kB|MB|GB)$/.exec(text) ?? [];
  const unitBytes = SIZE_UNITS_BYTES.get(unit);
  return amount === undefined || unitBytes === undefined ? null : Number(amount) * unitBytes;
}

function formatSize(bytes: number): string {
  for (const [unit, unitBytes] of [...SIZE_UNITS_BYTES].toReversed()) {
    if (bytes % unitBytes === 0) return `${bytes / unitBytes}${unit}`;
  }
  return `${bytes}B`;
}

/** A share from 0 to 1, written as a percentage. */
export function share(): Kind<number> {
  return {
    schema: textSchema(parsePercentage).pipe(z.number().min(0).max(1)),
    allowed: 'a percentage like 2% or 0.5%, from 0% to 100%',
  };
}

function parsePercentage(text: string): number | null {
  const [, percent] = /^(\d{1,3}(?:\.\d{1,6})?)%$/.exec(text) ?? [];
  return percent === undefined ? null : Number(percent) / 100;
}

export function oneOf<const T extends string>(values: readonly T[]): Kind<T> {
  return { schema: z.enum(values), allowed: `one of ${values.join(', ')}` };
}

/** Several of what `parseItem` reads, as a YAML list or as one text with commas. */
export function list<T>(parseItem: (text: string) => T | null, allowed: string): Kind<T[]> {
  const commaSeparated = z.string().transform((text) => (text === '' ? [] : text.split(',')));
  const parseAll = (items: readonly string[]): T[] => items.map((item) => parseOrThrow(parseItem, item.trim()));
  return { schema: readBy(z.union([commaSeparated, z.array(z.string())]), parseAll), allowed };
}

function parseOrThrow<T>(parse: (text: string) => T | null, item: string): T {
  const value = parse(item);
  if (value === null) throw new ValueProblem(`${JSON.stringify(item)} is none`);
  return value;
}

/** The same kind, where null stands for "none". */
export function optional<T>(kind: Kind<T>): Kind<T | null> {
  return { schema: kind.schema.nullable(), allowed: kind.allowed };
}
