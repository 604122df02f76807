/** How long reads took and how many stale copies stood in for a failing store, over the last hour, in this process only. */
import type { Listener } from '../../telemetry/events.ts';
import type { Clock } from '../../clock.ts';
import type { Endpoint } from '../endpoint.ts';
import { LogHistogram } from '../log-histogram.ts';

const STEP_MS = 30_000;
const STEPS = 120;

interface PulsePoint {
  /** When the step began, Unix milliseconds. */
  readonly atMs: number;
  readonly reads: number;
  /** 99 of 100 reads were answered within this time, give or take 7 %; null without reads. */
  readonly p99Ms: number | null;
  /** Copies that were served because the store failed. */
  readonly staleOnError: number;
}

export class Pulse {
  readonly hooks: Listener;
  readonly #clock: Clock;
  /** Oldest first, and only steps with reads. A step that is over is kept as a number, without its histogram. */
  readonly #over: PulsePoint[] = [];
  #current: Step;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#current = new Step(stepOf(clock.nowMs()));
    this.hooks = {
      onRead: ({ outcome, durationMs }) => {
        this.#advance();
        this.#current.micros.record(durationMs * 1000);
        this.#current.reads += 1;
        if (outcome === 'stale-if-error') this.#current.staleOnError += 1;
      },
    };
  }

  /** Oldest first; the last one is the step under way, and steps without reads are left out. */
  view(): readonly PulsePoint[] {
    this.#advance();
    return [...this.#over, this.#current.point()];
  }

  #advance(): void {
    const atMs = stepOf(this.#clock.nowMs());
    if (atMs === this.#current.atMs) return;
    if (this.#current.reads > 0) this.#over.push(this.#current.point());
    while ((this.#over[0]?.atMs ?? atMs) < atMs - STEPS * STEP_MS) this.#over.shift();
    this.#current = new Step(atMs);
  }
}

function stepOf(nowMs: number): number {
  return nowMs - (nowMs % STEP_MS);
}

class Step {
  readonly atMs: number;
  readonly micros = new LogHistogram();
  reads = 0;
  staleOnError = 0;

  constructor(atMs: number) {
    this.atMs = atMs;
  }

  point(): PulsePoint {
    const p99 = this.micros.quantile(0.99);
    const { atMs, reads, staleOnError } = this;
    return { atMs, reads, p99Ms: p99 === null ? null : p99 / 1000, staleOnError };
  }
}

/** `process`: the id of this process among its instances, for those whose calls reach several of them in turn. */
export function pulseEndpoint(pulse: Pick<Pulse, 'view'>, process: string): Endpoint {
  return {
    method: 'GET',
    path: '/api/cache/pulse',
    what: 'how long reads took and how many copies stood in for a failing store over the last hour, of this process',
    handle: async (ctx) => {
      const points = pulse.view().map(({ atMs, ...point }) => ({ at: new Date(atMs).toISOString(), ...point }));
      ctx.body = { process, stepMs: STEP_MS, points };
    },
  };
}
