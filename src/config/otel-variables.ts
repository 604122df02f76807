/** Reads variables as OpenTelemetry's specification writes them, and collects what is wrong with them. */
import type { Environment } from './environment.ts';
import { type ConfigFault, showGiven } from './errors.ts';
import { type ReadFile, reasonOf } from './layer.ts';

/** Each method gives null where the variable is not set, and where it is faulty: `faults` then has why. */
export class OtelVariables {
  readonly faults: ConfigFault[] = [];
  readonly #env: Environment;
  readonly #readFile: ReadFile;

  constructor(env: Environment, readFile: ReadFile) {
    this.#env = env;
    this.#readFile = readFile;
  }

  /** A variable that is set to nothing counts as not set. */
  given(name: string): string | null {
    const written = this.#env[name]?.trim();
    return written === undefined || written === '' ? null : written;
  }

  /** The name of the first of them that is set. */
  firstGiven(names: readonly string[]): string | null {
    return names.find((name) => this.given(name) !== null) ?? null;
  }

  fault(name: string, { problem = null, allowed, secret = false }: Fault): null {
    const written = this.given(name);
    const given = written === null ? null : showGiven(written, secret);
    this.faults.push({ name, given, problem, allowed });
    return null;
  }

  oneOf<const T extends string>(name: string, values: readonly T[]): T | null {
    const written = this.given(name)?.toLowerCase();
    if (written === undefined) return null;
    return values.find((value) => value === written) ?? this.fault(name, { allowed: `one of ${values.join(', ')}` });
  }

  /** Several of them, with commas. */
  listOf<const T extends string>(name: string, values: readonly T[]): readonly T[] | null {
    const written = this.given(name);
    if (written === null) return null;
    const items: T[] = [];
    for (const item of written.split(',').map((text) => text.trim().toLowerCase())) {
      const known = values.find((value) => value === item);
      if (known === undefined) {
        const problem = `${showGiven(item, false)} is none`;
        return this.fault(name, { problem, allowed: `${values.join(', ')}, or several of them with commas` });
      }
      items.push(known);
    }
    return items;
  }

  integer(name: string, { min, max, unit }: Range): number | null {
    const written = this.given(name);
    if (written === null) return null;
    const value = /^\d{1,10}$/.test(written) ? Number(written) : Number.NaN;
    if (value >= min && value <= max) return value;
    const of = unit === undefined ? '' : ' of milliseconds, without a unit';
    return this.fault(name, { allowed: `an integer${of}, from ${min} to ${max}` });
  }

  /** `name=value` with commas between them; values are percent-decoded, as in W3C Baggage. */
  pairs(name: string, { secret }: { readonly secret: boolean }): Readonly<Record<string, string>> | null {
    const written = this.given(name);
    if (written === null) return null;
    const pairs: Record<string, string> = {};
    for (const pair of written.split(',').filter((text) => text.trim() !== '')) {
      const [, key, value] = /^\s*([^=\s]+)\s*=(.*)$/.exec(pair) ?? [];
      const decoded = value === undefined ? null : decode(value.trim());
      if (key === undefined || decoded === null) {
        return this.fault(name, { allowed: 'pairs like name=value with commas between them, percent-encoded', secret });
      }
      pairs[key] = decoded;
    }
    return pairs;
  }

  /** The text of the file that the variable names. */
  file(name: string, allowed: string): string | null {
    const path = this.given(name);
    if (path === null) return null;
    try {
      return this.#readFile(path);
    } catch (error) {
      return this.fault(name, { problem: reasonOf(error), allowed });
    }
  }
}

interface Fault {
  readonly problem?: string | null;
  readonly allowed: string;
  /** The value is not to be shown. */
  readonly secret?: boolean;
}

interface Range {
  readonly min: number;
  readonly max: number;
  readonly unit?: 'ms';
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
