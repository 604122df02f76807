/** Whether a gateway is ready, and how what it depends on is doing: of one process, or of several workers behind one port. */
import type { Instances } from '../redis/instances.ts';
import type { Dependency, Health } from './health.ts';
import type { RedisHealth, Siblings } from './redis-health.ts';

export interface Readiness {
  readonly status: 'starting' | 'ready' | 'draining';
  readonly dependencies: readonly Dependency[];
}

/** How the workers of a gateway are doing. */
export interface WorkersHealth {
  /** How many answer, of how many there are to be, since when (Unix milliseconds); and those that have stopped to. */
  readonly ready: number;
  readonly wanted: number;
  readonly sinceMs: number;
  readonly silent: readonly { readonly worker: number; readonly pid: number }[];
  /** The dependencies of each worker, as they were a second ago at most. */
  readonly dependencies: readonly (readonly Dependency[])[];
}

/** The reports of a worker on itself: its metrics, or its counts for operators. */
export type WorkerReport = 'metrics' | 'counts';

/** How all workers of a gateway are doing, for each of them. */
export interface Workers extends Siblings {
  status(): WorkersHealth;
  /** The metrics of all as one Prometheus text. Rejects if the first process does not answer in time. */
  metrics(): Promise<string>;
}

interface Process extends Readiness {
  /** Null for the readiness of this process alone. */
  readonly workers: WorkersHealth | null;
  readonly hasRedisAnswered: boolean;
}

/**
 * Requests can be served as soon as one worker is ready, as the first process counts them. Nothing is ready before this
 * process has had an answer from Redis, if there is one, so that a wrong password stops a rollout. Later outages change
 * nothing: they would take all processes out of service at once.
 */
export function readinessOf({ status: own, dependencies, workers, hasRedisAnswered }: Process): Readiness {
  let status = own;
  if (status !== 'draining' && workers !== null) status = workers.ready > 0 ? 'ready' : 'starting';
  if (status === 'ready' && !hasRedisAnswered) status = 'starting';
  if (workers === null) return { status, dependencies };
  return { status, dependencies: [...worstOf(dependencies, workers.dependencies), workersDependency(workers)] };
}

/** The readiness of one process, from its start to its end, as `/readyz` and the other processes show it. */
export class OwnReadiness {
  readonly #health: Pick<Health, 'list'>;
  readonly #instances: Pick<Instances, 'setStatus'>;
  readonly #redis: Pick<RedisHealth, 'hasAnswered' | 'answered'> | null;
  #status: Readiness['status'] = 'starting';

  /** `redis`: null for a gateway without. */
  constructor(
    health: Pick<Health, 'list'>,
    instances: Pick<Instances, 'setStatus'>,
    redis: Pick<RedisHealth, 'hasAnswered' | 'answered'> | null,
  ) {
    this.#health = health;
    this.#instances = instances;
    this.#redis = redis;
    void redis?.answered.then(() => this.#announce());
  }

  get isDraining(): boolean {
    return this.#status === 'draining';
  }

  /** The readiness of this process; with `workers`, that of the whole gateway. */
  now(workers: WorkersHealth | null = null): Readiness {
    const own = { status: this.#status, dependencies: this.#health.list() };
    return readinessOf({ ...own, workers, hasRedisAnswered: this.#redis?.hasAnswered ?? true });
  }

  become(status: 'ready' | 'draining'): void {
    this.#status = status;
    this.#announce();
  }

  #announce(): void {
    this.#instances.setStatus(this.now().status);
  }
}

/**
 * Each of the process's dependencies as it is where it is worst: of several workers behind one port, it must not matter which
 * one answers. Among equally bad ones, the trouble that has lasted longest.
 */
function worstOf(own: readonly Dependency[], others: readonly (readonly Dependency[])[]): readonly Dependency[] {
  return own.map((dependency) => {
    const same = others.flatMap((list) => list.filter(({ name }) => name === dependency.name));
    return [dependency, ...same].reduce((worst, one) => (isWorse(one, worst) ? one : worst));
  });
}

function isWorse(one: Dependency, other: Dependency): boolean {
  const by = badness(one) - badness(other);
  return by > 0 || (by === 0 && one.status === 'degraded' && Date.parse(one.since) < Date.parse(other.since));
}

/** A dependency that is unknown to one worker is known to those that have used it. */
function badness({ status, severity }: Dependency): number {
  if (status === 'degraded') return severity === 'critical' ? 3 : 2;
  return status === 'ok' ? 1 : 0;
}

/** How many workers there are is one of the dependencies. */
function workersDependency({ ready, wanted, sinceMs, silent }: WorkersHealth): Dependency {
  const named = silent.map(
    ({ worker, pid }) => `; worker ${worker} (process ${pid}) does not, and is replaced if it stays so`,
  );
  return {
    name: 'workers',
    status: ready < wanted ? 'degraded' : 'ok',
    since: new Date(sinceMs).toISOString(),
    detail: `${ready} of ${wanted} workers answer${named.join('')}`,
    ...(ready < wanted ? { severity: 'warning' as const } : {}),
  };
}
