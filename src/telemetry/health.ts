/**
 * How everything a gateway depends on is doing and since when, for `/readyz`, the metrics and the log. A dependency is
 * checked when something reports that it may have changed, and when it is asked for; nothing is ever sent to find out
 * (C7). The log has one line when a dependency goes down and one when it is back.
 */
import type { Dependency } from '../admin/readiness.ts';
import type { Clock } from '../clock.ts';
import type { Logger } from '../log/logger.ts';

export type DependencyState =
  | Degraded
  | { readonly status: 'ok' | 'unknown'; readonly detail: string; readonly sinceMs?: number };

export interface Degraded {
  readonly status: 'degraded';
  /** For an operator. Holds no secret: probes need no token. */
  readonly detail: string;
  /** Which kind of trouble it is: a line of the log, written once per outage. */
  readonly message: string;
  /** The line of the log when this trouble is over, if another one says more than `okMessage`. */
  readonly overMessage?: string;
  /** Unix milliseconds, if it is known better than by the first check that finds it. */
  readonly sinceMs?: number;
  /** More of it, for the log only. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

export interface DependencyCheck {
  readonly name: string;
  /** Cheap, and without effect. */
  readonly check: () => DependencyState;
  /** The line of the log when the trouble is over. */
  readonly okMessage: string;
  /** Several that fail together, such as two uses of one Redis, are logged as one under this name. */
  readonly loggedAs?: string;
}

interface Tracked {
  readonly source: DependencyCheck;
  state: DependencyState;
  sinceMs: number;
}

export class Health {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #tracked = new Map<string, Tracked>();
  /** Outages that were logged and are not over, with the messages that were, and those that will say that each is over. */
  readonly #outages = new Map<string, { readonly messages: Map<string, string>; readonly sinceMs: number }>();

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Adds it to the end of the list. */
  add(source: DependencyCheck): void {
    const state = source.check();
    this.#tracked.set(source.name, { source, state, sinceMs: this.#startOf(state) });
    this.#log(source);
  }

  /** That dependency may have changed, or any of them if no name is given. */
  update(name?: string): void {
    for (const tracked of this.#tracked.values()) {
      if (name !== undefined && tracked.source.name !== name) continue;
      const before = tracked.state;
      const state = tracked.source.check();
      tracked.state = state;
      if (state.status !== before.status) tracked.sinceMs = this.#startOf(state);
      if (state.status !== before.status || messageOf(state) !== messageOf(before)) this.#log(tracked.source);
    }
  }

  list(): readonly Dependency[] {
    this.update();
    return [...this.#tracked.values()].map(({ source: { name }, state: { status, detail }, sinceMs }) => ({
      name,
      status,
      since: new Date(sinceMs).toISOString(),
      detail,
    }));
  }

  #startOf({ sinceMs }: DependencyState): number {
    return sinceMs ?? this.#clock.nowMs();
  }

  /** From `unknown` to `ok` is no change worth a line. */
  #log({ name, okMessage, loggedAs: dependency = name }: DependencyCheck): void {
    const members = [...this.#tracked.values()].filter(({ source }) => (source.loggedAs ?? source.name) === dependency);
    const outage = this.#outages.get(dependency);
    for (const { state, sinceMs } of members) {
      if (state.status !== 'degraded') continue;
      const { message, detail, fields, overMessage = okMessage } = state;
      const { messages } = outage ?? { messages: new Map() };
      if (outage === undefined) this.#outages.set(dependency, { messages, sinceMs });
      if (!messages.has(message)) this.#logger.warn({ dependency, detail, ...fields }, message);
      messages.set(message, overMessage);
      return;
    }
    if (outage === undefined) return;
    this.#outages.delete(dependency);
    const endedAtMs = Math.max(...members.map(({ sinceMs }) => sinceMs));
    const lastedMs = Math.max(0, endedAtMs - outage.sinceMs);
    for (const line of new Set(outage.messages.values())) this.#logger.info({ dependency, lastedMs }, line);
  }
}

function messageOf(state: DependencyState): string | null {
  return state.status === 'degraded' ? state.message : null;
}
