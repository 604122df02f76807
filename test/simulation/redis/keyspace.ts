/** All that a modelled Redis holds: values by name, each of one kind, which may expire by its clock. */
import { Failure, WRONG_TYPE } from './reply.ts';

export interface StreamEntry {
  readonly id: string;
  /** The two numbers of the id. */
  readonly place: readonly [number, number];
  readonly fields: readonly string[];
}

export interface Kinds {
  readonly string: { text: string };
  readonly hash: Map<string, string>;
  readonly list: string[];
  /** Scores by member. */
  readonly zset: Map<string, number>;
  readonly stream: { entries: StreamEntry[]; lastId: string };
}
export type Kind = keyof Kinds;

type Value = { [K in Kind]: { readonly kind: K; readonly value: Kinds[K] } }[Kind];
type Held = Value & { expiresAtMs: number | null };

const EMPTY = {
  string: () => ({ text: '' }),
  hash: () => new Map<string, string>(),
  list: (): string[] => [],
  zset: () => new Map<string, number>(),
  stream: () => ({ entries: [], lastId: '0-0' }),
} satisfies { [K in Kind]: () => Kinds[K] };

/** A copy of all that a Redis held at some time. */
export interface Backup {
  readonly held: ReadonlyMap<string, Held>;
}

export class Keyspace {
  /** Unix microseconds, by the clock of this Redis. */
  readonly nowMicros: () => number;
  #held = new Map<string, Held>();

  constructor(nowMicros: () => number) {
    this.nowMicros = nowMicros;
  }

  nowMs(): number {
    return Math.floor(this.nowMicros() / 1000);
  }

  /** Undefined if there is none; throws a Failure if it is of another kind. */
  find<K extends Kind>(name: string, kind: K): Kinds[K] | undefined {
    const held = this.#live(name);
    if (held === undefined) return undefined;
    return valueOf(held, kind);
  }

  /** A new one if there is none. */
  findOrMake<K extends Kind>(name: string, kind: K): Kinds[K] {
    const found = this.find(name, kind);
    if (found !== undefined) return found;
    const made = heldOf(kind);
    this.#held.set(name, made);
    return valueOf(made, kind);
  }

  kindOf(name: string): Kind | 'none' {
    return this.#live(name)?.kind ?? 'none';
  }

  setString(name: string, text: string, expiresAtMs: number | null): void {
    this.#held.set(name, { kind: 'string', value: { text }, expiresAtMs });
  }

  delete(name: string): boolean {
    return this.#live(name) !== undefined && this.#held.delete(name);
  }

  /** To be called after something was taken out: nothing that is empty stays, but for streams. */
  deleteIfEmpty(name: string): void {
    const held = this.#held.get(name);
    if (held?.kind === 'list' && held.value.length === 0) this.#held.delete(name);
    if ((held?.kind === 'hash' || held?.kind === 'zset') && held.value.size === 0) this.#held.delete(name);
  }

  /** Returns whether there is such a name. */
  expireAt(name: string, atMs: number): boolean {
    const held = this.#live(name);
    if (held === undefined) return false;
    held.expiresAtMs = atMs;
    if (atMs <= this.nowMs()) this.#held.delete(name);
    return true;
  }

  /** In milliseconds, as PTTL has it: -1 for no end, -2 for no such name. */
  leftMs(name: string): number {
    const held = this.#live(name);
    if (held === undefined) return -2;
    return held.expiresAtMs === null ? -1 : held.expiresAtMs - this.nowMs();
  }

  names(): readonly string[] {
    return [...this.#held.keys()].filter((name) => this.#live(name) !== undefined);
  }

  clear(): void {
    this.#held.clear();
  }

  backup(): Backup {
    return { held: copyOf(this.#held) };
  }

  restore({ held }: Backup): void {
    this.#held = copyOf(held);
  }

  #live(name: string): Held | undefined {
    const held = this.#held.get(name);
    if (held === undefined || held.expiresAtMs === null || held.expiresAtMs > this.nowMs()) return held;
    this.#held.delete(name);
    return undefined;
  }
}

function heldOf(kind: Kind): Held {
  if (kind === 'string') return { kind, value: EMPTY.string(), expiresAtMs: null };
  if (kind === 'hash') return { kind, value: EMPTY.hash(), expiresAtMs: null };
  if (kind === 'list') return { kind, value: EMPTY.list(), expiresAtMs: null };
  if (kind === 'zset') return { kind, value: EMPTY.zset(), expiresAtMs: null };
  return { kind, value: EMPTY.stream(), expiresAtMs: null };
}

/** Throws a Failure for a value of another kind. */
function valueOf<K extends Kind>(held: Value, kind: K): Kinds[K] {
  const kinds: { readonly [one in Kind]?: Kinds[one] } = { [held.kind]: held.value };
  const value: Kinds[K] | undefined = kinds[kind];
  if (value === undefined) throw new Failure(WRONG_TYPE);
  return value;
}

function copyOf(held: ReadonlyMap<string, Held>): Map<string, Held> {
  return structuredClone(new Map(held));
}
