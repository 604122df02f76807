/** How the values of settings are read from what was written, and what is allowed, in words. */
import { z } from 'zod';
import {
  DURATION_FORM,
  formatAmount,
  formatDuration,
  parseAmount,
  parseDuration,
  type Units,
} from '../time/duration.ts';

/** Kept beside the schema of a value; zod hands it on to the schema's copies. */
export interface ValueInfo {
  /** The allowed values, in words. */
  readonly allowed: string;
  /** The unit of the number that comes out: it ends the name that the value has in the configuration. */
  readonly unit?: 'Ms' | 'Bytes' | undefined;
}

const registry = z.registry<ValueInfo>();

/** Reads a value as written in YAML or in the environment, where it is always a string. */
export function codec<T>(schema: z.ZodType<T>, allowed: string, unit?: ValueInfo['unit']): z.ZodType<T> {
  return schema.register(registry, { allowed, unit });
}

/** Throws for a schema that is no codec. */
export function infoOf(schema: z.core.$ZodType): ValueInfo {
  const info = registry.get(schema);
  if (info === undefined) throw new Error('the schema is no codec');
  return info;
}

/** Thrown by a parse function to say what exactly is wrong. The message is shown, so it must not quote a secret. */
export class ValueProblem extends Error {
  override readonly name = 'ValueProblem';
}

/** Reads each of several parts. Throws a ValueProblem with the problems of all that cannot be read. */
export function readEach<I, T>(parts: readonly I[], read: (part: I, index: number) => T): T[] {
  const problems: string[] = [];
  const values = parts.flatMap((part, index) => {
    try {
      return [read(part, index)];
    } catch (error) {
      if (!(error instanceof ValueProblem)) throw error;
      problems.push(error.message);
      return [];
    }
  });
  if (problems.length > 0) throw new ValueProblem(problems.join('; '));
  return values;
}

/** Reads the value with `parse`, which returns null for one that it cannot read, or throws a ValueProblem. */
export function parsed<I, T>(written: z.ZodType<I>, parse: (input: I) => T | null): z.ZodType<T> {
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

/** The message of the ValueProblem that was thrown; null if none was. */
export function problemOf({ issues }: z.core.$ZodError): string | null {
  for (const issue of issues) {
    if (issue.code === 'custom' && typeof issue.params?.['problem'] === 'string') return issue.params['problem'];
  }
  return null;
}

export function integer(min: number, max: number, note = ''): z.ZodType<number> {
  const digits = z.stringFormat('integer', /^\d{1,10}$/).transform(Number);
  const schema = z.union([z.number(), digits]).pipe(z.int().min(min).max(max));
  return codec(schema, `an integer from ${min} to ${max}${note}`);
}

export const port = integer(0, 65_535, ' (0 takes any free port)');

/** Milliseconds, written as a duration. */
export function duration(minMs: number, maxMs: number): z.ZodType<number> {
  const schema = parsed(z.string(), parseDuration).pipe(z.int().min(minMs).max(maxMs));
  return codec(schema, `${DURATION_FORM}, from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`, 'Ms');
}

const SIZE_UNITS: Units = new Map([
  ['GB', 1_000_000_000],
  ['MB', 1_000_000],
  ['kB', 1000],
  ['B', 1],
]);

/** Bytes, written with a decimal unit. */
export function size(minBytes: number, maxBytes: number): z.ZodType<number> {
  const bytes = parsed(z.string(), (written) => parseAmount(written, SIZE_UNITS));
  const schema = bytes.pipe(z.int().min(minBytes).max(maxBytes));
  const range = `from ${formatAmount(minBytes, SIZE_UNITS)} to ${formatAmount(maxBytes, SIZE_UNITS)}`;
  return codec(schema, `a size like 500kB, 64MB or 1GB (units of 1000), ${range}`, 'Bytes');
}

/** A share from 0 to `maxPercent` hundredths, written as a percentage. */
export function share(maxPercent = 100): z.ZodType<number> {
  const schema = z
    .stringFormat('percentage', /^\d{1,3}(?:\.\d{1,6})?%$/)
    .transform((written) => Number(written.slice(0, -1)) / 100)
    .pipe(z.number().max(maxPercent / 100));
  return codec(schema, `a percentage like 2% or 0.5%, from 0% to ${maxPercent}%`);
}

export function oneOf<const T extends string>(values: readonly T[]): z.ZodType<T> {
  return codec(z.enum(values), `one of ${values.join(', ')}`);
}

export const yesOrNo = codec(
  z.union([z.boolean(), z.enum(['true', 'false']).transform((written) => written === 'true')]),
  'true or false',
);

/** Several values, as a YAML list or as one text with commas. */
export function list<T>(item: z.ZodType<T>, allowed: string): z.ZodType<readonly T[]> {
  const commaSeparated = z.string().transform((written) => (written === '' ? [] : written.split(',')));
  const parseItem = (written: string): T => {
    const { success, data, error } = item.safeParse(written.trim());
    if (!success) throw new ValueProblem(problemOf(error) ?? `${JSON.stringify(written.trim())} is none`);
    return data;
  };
  const schema = parsed(z.union([commaSeparated, z.array(z.string())]), (all) => readEach(all, parseItem));
  return codec(schema.readonly(), allowed);
}

/** The same values, and null, which means "none" and becomes the second value. */
export function optional<T, N>(value: z.ZodType<T>, none: N): z.ZodType<T | N> {
  const { allowed, unit } = infoOf(value);
  const schema = value.nullable().transform((read) => (read === null ? none : read));
  return codec(schema, allowed, unit);
}
