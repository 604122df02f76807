/**
 * The metrics of several workers as one. A counter never goes back: what a worker that is gone had counted when it was
 * last asked stays in the sums, since a sum that fell would be read as a restart, and everything in it be counted again.
 */
import { AggregatorRegistry, Gauge, Registry } from 'prom-client';
import { z } from 'zod';
import { countDroppedLines } from './metrics.ts';

/** As prom-client hands them from process to process, and adds them up. */
const metricsSchema = z.array(z.looseObject({ type: z.string() }));

type WorkerValues = z.infer<typeof metricsSchema>;

export interface WorkerAnswers {
  /** By the worker's number, which is never used again. */
  readonly answers: readonly { readonly worker: number; readonly value: unknown }[];
  /** Workers that are there and did not answer in time. */
  readonly silent: readonly number[];
}

export class WorkerMetrics {
  readonly #wanted: number;
  /** The metrics of the first process itself. */
  readonly #own = new Registry();
  readonly #last = new Map<number, WorkerValues>();
  /** The counts of workers that are gone. */
  #gone: WorkerValues = [];

  /** `wanted`: how many workers there are to be. `droppedLines`: lines of the log that the first process dropped. */
  constructor(wanted: number, droppedLines: () => number) {
    this.#wanted = wanted;
    countDroppedLines(this.#own, droppedLines);
  }

  /**
   * The Prometheus text. For a worker that did not answer it has the last counts, and no values that are true only of a
   * moment. Throws if an answer holds no metrics.
   */
  async render({ answers, silent }: WorkerAnswers): Promise<string> {
    const current = answers.map(({ worker, value }) => ({ worker, values: metricsSchema.parse(value) }));
    await this.#retire([...current.map(({ worker }) => worker), ...silent]);
    for (const { worker, values } of current) this.#last.set(worker, values);
    const counted = silent.map((worker) => countedIn(this.#last.get(worker) ?? []));
    const own = metricsSchema.parse(await this.#own.getMetricsAsJSON());
    const all = AggregatorRegistry.aggregate([...current.map(({ values }) => values), ...counted, this.#gone, own]);
    const workers = new Gauge({
      name: 'evalgate_workers',
      help: 'Worker processes: how many should run, and how many the metrics cover.',
      labelNames: ['state'],
      registers: [all],
    });
    workers.set({ state: 'wanted' }, this.#wanted);
    workers.set({ state: 'answered' }, answers.length);
    return all.metrics();
  }

  async #retire(present: readonly number[]): Promise<void> {
    const gone = [...this.#last].filter(([worker]) => !present.includes(worker));
    if (gone.length === 0) return;
    for (const [worker] of gone) this.#last.delete(worker);
    const sums = AggregatorRegistry.aggregate([this.#gone, ...gone.map(([, values]) => countedIn(values))]);
    this.#gone = metricsSchema.parse(await sums.getMetricsAsJSON());
  }
}

/** The kinds of metrics that only ever grow. */
function countedIn(values: WorkerValues): WorkerValues {
  return values.filter(({ type }) => type !== 'gauge');
}
