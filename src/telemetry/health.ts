/**
 * How everything a gateway depends on is doing and since when, for `/readyz`, the metrics and the log. A dependency is
 * checked when something reports that it may have changed, and when it is asked for; nothing is ever sent to find out
 * (C7). The log has one line when a dependency goes down and one when it is back.
 */
import type { Dependency } from '../admin/readiness.ts';
import type { Clock } from '../clock.ts';
import type { Logger } from '../log/logger.ts';

export interface DependencyState {
  readonly status: Dependency['status'];
  /** For an operator. Holds no secret: probes need no token. */
  readonly detail: string;
  /** Which kind of `degraded` it is, if there are several; the log has a line for each. */
  readonly trouble?: string;
  /** Unix milliseconds, if it is known better than by the first check that finds it. */
  readonly sinceMs?: number;
  /** More of it, for the log only. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

export interface DependencyCheck {
  readonly name: string;
  /** Cheap, and without effect. */
  readonly check: () => DependencyState;
  /** Several that fail together, such as two uses of one Redis, are logged as one under this name. */
  readonly loggedAs?: string;
}

interface Tracked {
  readonly source: DependencyCheck;
  state: DependencyState;
  sinceMs: number;
}

/** An outage that was logged and is not over. Each kind of it is logged once, however often one becomes the other. */
interface Outage {
  readonly troubles: ReadonlySet<string>;
  readonly sinceMs: number;
}

type Messages = Readonly<Record<string, string>>;

const REDIS: Messages = {
  disconnected: 'Redis does not answer',
  subscriptionLost: 'Redis answers, but its messages do not arrive: nothing is served from memory',
  full: 'Redis is full (maxmemory): limits are per process, and changes fail',
  readOnly: 'Redis refuses changes: limits are per process',
  refused: 'Redis refuses the user, the password or the commands of this gateway',
  ok: 'Redis answers again',
};

/** The messages of log lines, by dependency and trouble. */
const MESSAGES: Readonly<Record<string, Messages>> = {
  store: {
    degraded: 'the store is failing',
    circuitOpen: 'the store is failing: calls to it are held back, but for one a second',
    ok: 'the store answers again',
  },
  redis: REDIS,
  'redis-state': REDIS,
  'redis-cache': REDIS,
  quota: {
    degraded: 'quotas: this process goes on with its share of the limits',
    ok: 'quotas: exact over all processes again',
  },
  keys: {
    disconnected: 'keys: Redis cannot be asked; only keys that it confirmed lately are let in',
    neverAsked: 'keys: Redis could not be asked since the start; no key is let in until it answers',
    graceOver: 'keys: Redis could not be asked for too long; no key is let in until it answers',
    disconnectedDemo: 'keys: Redis cannot be asked; only keys that it confirmed lately and the demo keys are let in',
    neverAskedDemo: 'keys: Redis could not be asked since the start; only the demo keys are let in until it answers',
    graceOverDemo: 'keys: Redis could not be asked for too long; only the demo keys are let in until it answers',
    subscriptionLost: 'keys: changes may be missed; each key is confirmed before it is used',
    full: 'keys: Redis is full; they can be revoked, and not be issued or changed',
    readOnly: 'keys: Redis refuses changes; none can be issued, changed or revoked',
    refused: 'keys: Redis refuses commands; none can be issued, changed or revoked',
    ok: 'keys: every change is heard of again',
  },
  capacity: {
    degraded: 'there are as many requests or connections as there may be: others are refused',
    ok: 'nothing is refused for want of a place any more',
  },
  maintenance: { degraded: 'maintenance: the store is asked nothing', ok: 'maintenance has ended' },
};

export class Health {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #tracked = new Map<string, Tracked>();
  readonly #outages = new Map<string, Outage>();

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
      if (state.status !== before.status || state.trouble !== before.trouble) this.#log(tracked.source);
    }
  }

  list(): readonly Dependency[] {
    this.update();
    return [...this.#tracked.values()].map(({ source, state, sinceMs }) => ({
      name: source.name,
      status: state.status,
      since: new Date(sinceMs).toISOString(),
      detail: state.detail,
    }));
  }

  #startOf({ sinceMs }: DependencyState): number {
    return sinceMs ?? this.#clock.nowMs();
  }

  /** From `unknown` to `ok` is no change worth a line. */
  #log({ name, loggedAs: dependency = name }: DependencyCheck): void {
    const members = [...this.#tracked.values()].filter(({ source }) => (source.loggedAs ?? source.name) === dependency);
    const worst = members.find(({ state }) => state.status === 'degraded');
    const outage = this.#outages.get(dependency);
    const messages = MESSAGES[dependency] ?? {};
    if (worst !== undefined) {
      const { trouble = 'degraded', detail, fields } = worst.state;
      if (outage?.troubles.has(trouble) === true) return;
      const troubles = new Set([...(outage?.troubles ?? []), trouble]);
      this.#outages.set(dependency, { troubles, sinceMs: outage?.sinceMs ?? worst.sinceMs });
      this.#logger.warn({ dependency, detail, ...fields }, messages[trouble] ?? `${dependency} is degraded`);
    } else if (outage !== undefined) {
      this.#outages.delete(dependency);
      const endedAtMs = Math.max(...members.map(({ sinceMs }) => sinceMs));
      const lastedMs = Math.max(0, endedAtMs - outage.sinceMs);
      this.#logger.info({ dependency, lastedMs }, messages['ok'] ?? `${dependency} is ok again`);
    }
  }
}
