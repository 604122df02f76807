/**
 * What a gateway depends on, watched: how each is doing and since when, for `/readyz` and the metrics, and each turn
 * told once, for the log. A dependency is looked at where something tells that it may have turned, and when it is asked
 * for; nothing is ever sent just to see.
 */
import type { Dependency } from './admin/readiness.ts';
import type { Clock } from './clock.ts';

export interface Sighting {
  readonly status: Dependency['status'];
  readonly detail: string;
  /** What kind of `degraded` it is, where there are several; the log has a line for each. */
  readonly trouble?: string;
  /** Where it is known better than by the time of the first look that finds it. Unix milliseconds. */
  readonly sinceMs?: number;
  /** More of it, for the log alone. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

export interface DependencySource {
  readonly name: string;
  /** Cheap, and without effect. */
  readonly look: () => Sighting;
  /** Several that stand and fall together, such as two uses of one Redis, are told of as one under this name. */
  readonly toldAs?: string;
}

/** A change of what is told of. From `unknown` to `ok` is none. */
export interface Turn {
  readonly name: string;
  readonly status: 'ok' | 'degraded';
  readonly trouble: string | null;
  readonly detail: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** How long it was degraded, where it is well again; else null. */
  readonly lastedMs: number | null;
}

interface Watched {
  readonly source: DependencySource;
  sighting: Sighting;
  sinceMs: number;
}

/** A trouble that is not over: each of its kinds is told once, however often one becomes the other. */
interface Told {
  readonly troubles: ReadonlySet<string>;
  readonly sinceMs: number;
}

/** Of a trouble that has no name. */
const PLAIN = 'degraded';

export interface DependencyWatchOptions {
  readonly clock: Clock;
  readonly onTurn: (turn: Turn) => void;
}

export class DependencyWatch {
  readonly #options: DependencyWatchOptions;
  readonly #watched = new Map<string, Watched>();
  /** The troubles that were told and are not over. */
  readonly #told = new Map<string, Told>();

  constructor(options: DependencyWatchOptions) {
    this.#options = options;
  }

  /** From now on it is one of the list, behind those that are there. */
  add(source: DependencySource): void {
    const sighting = source.look();
    this.#watched.set(source.name, { source, sighting, sinceMs: this.#sinceOf(sighting) });
    this.#tell(source);
  }

  /** Something may have turned: of that one, or of any where no name is given. */
  look(name?: string): void {
    for (const watched of this.#watched.values()) {
      if (name === undefined || watched.source.name === name) this.#lookAt(watched);
    }
  }

  list(): readonly Dependency[] {
    this.look();
    return [...this.#watched.values()].map(({ source, sighting, sinceMs }) => ({
      name: source.name,
      status: sighting.status,
      since: new Date(sinceMs).toISOString(),
      detail: sighting.detail,
    }));
  }

  #lookAt(watched: Watched): void {
    const before = watched.sighting;
    watched.sighting = watched.source.look();
    if (watched.sighting.status !== before.status) watched.sinceMs = this.#sinceOf(watched.sighting);
    const isTurned = watched.sighting.status !== before.status || watched.sighting.trouble !== before.trouble;
    if (isTurned) this.#tell(watched.source);
  }

  #sinceOf({ sinceMs }: Sighting): number {
    return sinceMs ?? this.#options.clock.nowMs();
  }

  #tell({ name, toldAs = name }: DependencySource): void {
    const members = [...this.#watched.values()].filter(({ source }) => (source.toldAs ?? source.name) === toldAs);
    const [worst] = members.filter(({ sighting }) => sighting.status === 'degraded');
    const told = this.#told.get(toldAs);
    if (worst !== undefined) {
      const { trouble = PLAIN, detail, fields = {} } = worst.sighting;
      if (told?.troubles.has(trouble) === true) return;
      const troubles = new Set([...(told?.troubles ?? []), trouble]);
      this.#told.set(toldAs, { troubles, sinceMs: told?.sinceMs ?? worst.sinceMs });
      this.#options.onTurn({ name: toldAs, status: 'degraded', trouble, detail, fields, lastedMs: null });
      return;
    }
    if (told === undefined) return;
    this.#told.delete(toldAs);
    const endMs = Math.max(...members.map(({ sinceMs }) => sinceMs));
    const detail = members[0]?.sighting.detail ?? '';
    const lastedMs = Math.max(0, endMs - told.sinceMs);
    this.#options.onTurn({ name: toldAs, status: 'ok', trouble: null, detail, fields: {}, lastedMs });
  }
}
