/** One case of the benchmark: what it is held to, and every figure it measured. */
import type { Bar } from '../../prove/bar.ts';
import type { Bench } from './bench.ts';
import { type Measured, timesAsMuch } from './measure.ts';

export interface CaseResult {
  readonly rows: readonly Bar[];
  readonly tables: readonly Table[];
}

export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly lines: readonly (readonly string[])[];
}

export type Case = (bench: Bench) => Promise<CaseResult>;

/** A row that holds the CPU time of one server to that of another. */
export function ratioRow(what: string, [subject, reference]: readonly [Measured, Measured], most: number): Bar {
  const ratio = timesAsMuch(subject, reference);
  return {
    name: what,
    bar: `at most ${most} × ${reference.name}`,
    measured: `${micros(subject)} against ${micros(reference)}: ${ratio.toFixed(2)} ×`,
    ok: ratio <= most,
  };
}

/** A figure that is held to nothing. */
export function reported(name: string, measured: string): Bar {
  return { name, bar: 'reported', measured, ok: true };
}

/** `references`: what each is held against; by default the first of them. */
export function comparison(title: string, measured: readonly Measured[], references = measured.slice(0, 1)): Table {
  return {
    title,
    head: ['server', 'CPU a request', ...references.map(({ name }) => `× ${name}`), 'requests/s', 'p50', 'p99'],
    lines: measured.map((one) => [
      one.name,
      micros(one),
      ...references.map((reference) => timesAsMuch(one, reference).toFixed(2)),
      Math.round(one.requestsPerSecond).toLocaleString('en'),
      `${one.p50Ms} ms`,
      `${one.p99Ms} ms`,
    ]),
  };
}

export function micros({ cpuMicros }: Pick<Measured, 'cpuMicros'>): string {
  return `${cpuMicros.toFixed(1)} µs`;
}

/** The one of that name. */
export function named(measured: readonly Measured[], name: string): Measured {
  const found = measured.find((one) => one.name === name);
  if (found === undefined) throw new Error(`${name} was not measured`);
  return found;
}
