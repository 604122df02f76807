/** How long reads took and how many old copies stood in for a failing store, over the last hour: of this process alone. */
import type { Listener } from '../../telemetry/events.ts';
import type { Clock } from '../../clock.ts';
import type { Endpoint } from '../endpoint.ts';
import { LogHistogram } from '../log-histogram.ts';

const STEP_MS = 30_000;
const STEPS = 120;

/** What one step came to. */
export interface Beat {
  /** When the step began, Unix milliseconds. */
  readonly atMs: number;
  readonly reads: number;
  /** Within this time 99 of 100 reads were answered, within 7 %; null where there were none. */
  readonly p99Ms: number | null;
  /** Copies that were served because the store failed. */
  readonly staleOnError: number;
}

/** A step that is under way. */
interface Counts {
  readonly atMs: number;
  readonly micros: LogHistogram;
  reads: number;
  staleOnError: number;
}

export class Pulse {
  readonly hooks: Listener;
  readonly #clock: Clock;
  /** Oldest first, and only steps in which anything was read: what is over is one number, not a histogram. */
  readonly #over: Beat[] = [];
  #current: Counts;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#current = countsFrom(stepOf(clock.nowMs()));
    this.hooks = {
      onRead: ({ outcome, durationMs }) => {
        this.#turn();
        this.#current.micros.record(durationMs * 1000);
        this.#current.reads += 1;
        if (outcome === 'stale-if-error') this.#current.staleOnError += 1;
      },
    };
  }

  /** Oldest first; the last one is the step under way, and steps without reads are left out. */
  view(): readonly Beat[] {
    this.#turn();
    return [...this.#over, beatOf(this.#current)];
  }

  #turn(): void {
    const stepAtMs = stepOf(this.#clock.nowMs());
    if (stepAtMs === this.#current.atMs) return;
    if (this.#current.reads > 0) this.#over.push(beatOf(this.#current));
    while ((this.#over[0]?.atMs ?? stepAtMs) < stepAtMs - STEPS * STEP_MS) this.#over.shift();
    this.#current = countsFrom(stepAtMs);
  }
}

/** `process`: names this process among those of its fleet, for whoever hears of several in turn. */
export function pulseEndpoint(pulse: Pick<Pulse, 'view'>, process: string): Endpoint {
  return {
    method: 'GET',
    path: '/api/cache/pulse',
    what: 'how long reads took and how many copies stood in for a failing store over the last hour, of this process',
    handle: async (ctx) => {
      const points = pulse.view().map(({ atMs, ...beat }) => ({ at: new Date(atMs).toISOString(), ...beat }));
      ctx.body = { process, stepMs: STEP_MS, points };
    },
  };
}

function stepOf(atMs: number): number {
  return atMs - (atMs % STEP_MS);
}

function countsFrom(atMs: number): Counts {
  return { atMs, micros: new LogHistogram(), reads: 0, staleOnError: 0 };
}

function beatOf({ atMs, reads, micros, staleOnError }: Counts): Beat {
  const p99 = micros.quantile(0.99);
  return { atMs, reads, p99Ms: p99 === null ? null : p99 / 1000, staleOnError };
}
