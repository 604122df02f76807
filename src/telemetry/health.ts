/**
 * How everything a gateway depends on is doing and since when, for `/readyz`, the metrics and the log. A dependency is
 * checked when something reports that it may have changed, and when it is asked for (C7: nothing is ever sent to find
 * out). The log has one line when a dependency goes down and one when it is back.
 *
 * The text in `/readyz` is the `detail` of each check: of the store in store-health.ts, of settings, capacity and maintenance
 * in dependencies.ts, of answers in consumers.ts, of Redis and quota in redis-health.ts, of history in history-loss.ts, of eviction
 * in eviction.ts and of keys in key-health.ts (with words of redis/refusal.ts), of workers in readiness.ts, which decides ready or
 * not. admin/app.ts renders it.
 */
import type { Clock } from '../time/clock.ts';
import type { Logger } from '../log/logger.ts';

/** A dependency as `/readyz` shows it. */
export interface Dependency {
  readonly name: string;
  readonly status: DependencyState['status'];
  /** ISO 8601. */
  readonly since: string;
  readonly detail: string;
  /** Only of one that is degraded. `critical`: most consumers get no answers. */
  readonly severity?: 'warning' | 'critical';
  /** When it will be over, or become worse, if that is known. ISO 8601. */
  readonly deadline?: string;
}

/** A dependency changed its state. */
export interface StateChange {
  /** ISO 8601. */
  readonly at: string;
  readonly name: string;
  readonly from: Dependency['status'];
  readonly to: Dependency['status'];
  /** The detail of the new state. */
  readonly detail: string;
}

/** `detail` is for an operator, and holds no secret: probes need no token. */
export type DependencyState =
  | Degraded
  | { readonly status: 'ok' | 'unknown'; readonly detail: string; readonly sinceMs?: number };

interface Degraded extends More {
  readonly status: 'degraded';
  readonly detail: string;
  /** Which kind of trouble it is: a line of the log, written once per outage. */
  readonly message: string;
}

interface More {
  /** The line of the log when this trouble is over, if another one says more than `okMessage`. */
  readonly overMessage?: string;
  /** Unix milliseconds, if it is known better than by the first check that finds it. */
  readonly sinceMs?: number;
  readonly isCritical?: boolean;
  /** When it will be over, or become worse, Unix milliseconds. */
  readonly deadlineMs?: number;
  /** For the log only. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

export function degraded(message: string, detail: string, more: More = {}): DependencyState {
  return { status: 'degraded', message, detail, ...more };
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

const MAX_CHANGES = 20;
/** In so long, the text of one trouble changes twice at most: one that flips with each call cannot be read. */
const TWO_TEXTS_IN_MS = 4000;

interface Tracked extends DependencyCheck {
  state: DependencyState;
  sinceMs: number;
  detail: string;
  /** When it changed last, and the time before, by the clock of those who read it. */
  changedAtMs: readonly number[];
}

export class Health {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #tracked: Tracked[] = [];
  /** The newest first. */
  #changes: readonly StateChange[] = [];
  /** Outages that were logged and are not over: by each message that was, the one that will say that it is over. */
  readonly #outages = new Map<string, { readonly messages: Map<string, string>; readonly sinceMs: number }>();

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Adds it to the end of the list. */
  add(dependency: DependencyCheck): void {
    const state = dependency.check();
    const nowMs = this.#clock.nowMs();
    this.#tracked.push({
      ...dependency,
      state,
      sinceMs: state.sinceMs ?? nowMs,
      detail: state.detail,
      changedAtMs: [],
    });
    this.#log(dependency);
  }

  /** That dependency may have changed, or any of them if no name is given. */
  update(name?: string): void {
    for (const tracked of this.#tracked) {
      if (name !== undefined && tracked.name !== name) continue;
      const before = tracked.state;
      const state = tracked.check();
      tracked.state = state;
      const nowMs = this.#clock.nowMs();
      if (state.status !== before.status) {
        tracked.sinceMs = state.sinceMs ?? nowMs;
        const { name: of } = tracked;
        const at = new Date(tracked.sinceMs).toISOString();
        const change = { at, name: of, from: before.status, to: state.status, detail: state.detail };
        this.#changes = [change, ...this.#changes].slice(0, MAX_CHANGES);
      }
      const isSameTrouble = messageOf(state) !== null && messageOf(state) === messageOf(before);
      const [, earlierMs = Number.NEGATIVE_INFINITY] = tracked.changedAtMs;
      const isRead = performance.now() - earlierMs >= TWO_TEXTS_IN_MS;
      if (state.detail !== tracked.detail && (!isSameTrouble || isRead)) {
        tracked.detail = state.detail;
        tracked.changedAtMs = isSameTrouble ? [performance.now(), ...tracked.changedAtMs.slice(0, 1)] : [];
      }
      if (state.status !== before.status || messageOf(state) !== messageOf(before)) this.#log(tracked);
    }
  }

  changes(): readonly StateChange[] {
    return this.#changes;
  }

  list(): readonly Dependency[] {
    this.update();
    return this.#tracked.map(({ name, state, sinceMs, detail }) => ({
      name,
      status: state.status,
      since: new Date(sinceMs).toISOString(),
      detail,
      ...moreOf(state),
    }));
  }

  /** From `unknown` to `ok` is no change worth a line. */
  #log({ name, okMessage, loggedAs: dependency = name }: DependencyCheck): void {
    const members = this.#tracked.filter((tracked) => (tracked.loggedAs ?? tracked.name) === dependency);
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

function moreOf(state: DependencyState): Pick<Dependency, 'severity' | 'deadline'> {
  if (state.status !== 'degraded') return {};
  const { isCritical = false, deadlineMs } = state;
  const severity = isCritical ? 'critical' : 'warning';
  return deadlineMs === undefined ? { severity } : { severity, deadline: new Date(deadlineMs).toISOString() };
}

function messageOf(state: DependencyState): string | null {
  return state.status === 'degraded' ? state.message : null;
}
