/** What was done to the gateways and when, to judge failed requests against. */

/** A request that did not go as it should. */
export interface Failure {
  readonly gateway: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** 0 where no whole answer came. */
  readonly status: number;
  readonly what: string;
}

export interface Fault {
  readonly name: string;
  /** Which failures it can cause, while it lasts and so long after. */
  readonly explains: (failure: Failure) => boolean;
  readonly tailMs: number;
}

interface Span extends Fault {
  readonly fromMs: number;
  toMs: number;
}

export class FaultLog {
  readonly #spans: Span[] = [];

  /** Returns what ends it. */
  begin(fault: Fault): () => void {
    const span = { ...fault, fromMs: Date.now(), toMs: Number.POSITIVE_INFINITY };
    this.#spans.push(span);
    return () => {
      span.toMs = Date.now();
    };
  }

  isExplained(failure: Failure): boolean {
    return this.#spans.some(
      ({ fromMs, toMs, tailMs, explains }) =>
        failure.fromMs <= toMs + tailMs && failure.toMs >= fromMs && explains(failure),
    );
  }

  /** The last one that had begun by then, and how long it was over: for who looks into an unexplained failure. */
  before(atMs: number): string {
    const last = this.#spans.findLast(({ fromMs }) => fromMs <= atMs);
    if (last === undefined) return 'before all faults';
    return last.toMs >= atMs ? `during "${last.name}"` : `${atMs - last.toMs} ms after "${last.name}"`;
  }

  /** How many there were of each. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { name } of this.#spans) counts.set(name, (counts.get(name) ?? 0) + 1);
    return counts;
  }

  /** The share of that time in which no failure at all would be explained. */
  calmShare(fromMs: number, untilMs: number): number {
    const step = 50;
    let calm = 0;
    for (let atMs = fromMs; atMs < untilMs; atMs += step) {
      if (!this.#spans.some((span) => span.fromMs <= atMs && atMs <= span.toMs + span.tailMs)) calm += step;
    }
    return calm / Math.max(step, untilMs - fromMs);
  }
}
