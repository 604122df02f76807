/**
 * Copies that many holders use, bounded in bytes: what one holder reads does not push out what others use. A holder is an
 * API key, as in shares.ts. Each copy is charged to one: to the holder that brought it, or to another that reads it and has
 * less.
 *
 * When there is no room, the least recently used copy of all is evicted if nobody has used it for five minutes. Else it is the
 * least recently used one of those holders that have more than an equal share and more than half of what the largest has. So
 * a flood takes the room of the one who floods and of what nobody uses, and holders that have about as much share a plain
 * LRU. A holder that has no more than an equal share loses no copy that is in use.
 *
 * It fails in two ways:
 * - While all else is in use, a copy is not kept if there is no room for it beside what its holder leaves to the others.
 * - A copy that several use counts as one holder's, who has that much less room for copies of its own. It is
 *   evicted when this holder's copies are and the last other reader holds as much.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../time/clock.ts';

/**
 * Copies that nobody has used for so long go first. One that is read less often spares at most twelve calls an hour; with a
 * shorter time, a flood would take what people read page by page.
 */
const IDLE_MICROS = 5 * 60 * 1_000_000;

interface Weighed {
  readonly bytes: number;
}

export interface FairLruOptions<V> {
  readonly maxBytes: number;
  readonly clock: Pick<Clock, 'nowMicros'>;
  /** The copy has made room, or there was none for it. */
  readonly onEvicted: (key: string, value: V) => void;
}

/** A copy, and its place among those that one holder is charged for. */
interface Place<V extends Weighed> {
  readonly key: string;
  readonly value: V;
  line: Line<V>;
  /** Who else has used it last. */
  other: string | null;
  /** Unique, so that it also orders uses of the same microsecond. */
  usedMicros: number;
  older: Place<V> | null;
  newer: Place<V> | null;
}

export class FairLru<V extends Weighed> {
  readonly maxBytes: number;
  readonly #clock: FairLruOptions<V>['clock'];
  readonly #onEvicted: FairLruOptions<V>['onEvicted'];
  /** In the order of use. Room is made before it is needed, so that lru-cache never evicts by itself. */
  readonly #places: LRUCache<string, Place<V>>;
  /** By holder. A holder that is charged for nothing has none. */
  readonly #lines = new Map<string, Line<V>>();
  #bytes = 0;
  #lastMicros = 0;

  constructor({ maxBytes, clock, onEvicted }: FairLruOptions<V>) {
    this.maxBytes = maxBytes;
    this.#clock = clock;
    this.#onEvicted = onEvicted;
    // lru-cache takes a maximum of 0 for none at all.
    this.#places = new LRUCache({ maxSize: Math.max(1, maxBytes), sizeCalculation: ({ value }) => value.bytes });
  }

  get size(): number {
    return this.#places.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** To look at it is no use of it. */
  peek(key: string): V | undefined {
    return this.#places.peek(key)?.value;
  }

  /** The holder has read it. Costs the same however many copies and holders there are. */
  use(key: string, holder: string): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    place.usedMicros = this.#nowMicros();
    if (place.line.holder !== holder) {
      place.other = holder;
      if (this.#handOver(place)) return;
    }
    place.line.moveToEnd(place);
  }

  /**
   * Sets it as used now. The holder charged for a copy of the key stays charged; `holder` is null for a change of such a
   * copy that nobody has asked for. False if there is no room for it: then there is none of that key.
   */
  set(key: string, value: V, holder: string | null): boolean {
    const known = this.#places.peek(key);
    const owner = known?.line.holder ?? holder;
    const other = holder === null || holder === owner ? (known?.other ?? null) : holder;
    this.delete(key);
    if (owner === null) return false;
    if (value.bytes > this.maxBytes) {
      this.#onEvicted(key, value);
      return false;
    }
    const line = this.#lineOf(owner);
    const place = { key, value, line, other, usedMicros: this.#nowMicros(), older: null, newer: null };
    this.#charge(place, line);
    if (!this.#makeRoomFor(place)) return false;
    this.#places.set(key, place);
    return true;
  }

  delete(key: string): void {
    const place = this.#places.peek(key);
    if (place !== undefined) this.#remove(place);
  }

  /** The last used first. */
  keys(): Iterable<string> {
    return this.#places.keys();
  }

  *values(): Generator<V> {
    for (const { value } of this.#places.values()) yield value;
  }

  *entries(): Generator<readonly [key: string, value: V]> {
    for (const [key, { value }] of this.#places.entries()) yield [key, value];
  }

  /** Evicts copies until there is room. False if the new one itself is evicted. */
  #makeRoomFor(newest: Place<V>): boolean {
    while (this.#bytes > this.maxBytes) {
      const [oldest] = this.#places.rvalues();
      if (oldest === undefined || newest.usedMicros - oldest.usedMicros < IDLE_MICROS) break;
      this.#evict(oldest);
    }
    // Known before any other copy is evicted for it.
    if (this.#bytes > this.maxBytes && !this.#fits(newest)) {
      this.#evict(newest);
      return false;
    }
    let evictable: Evictable<V> = { lines: [], left: 0 };
    while (this.#bytes > this.maxBytes) {
      let place = oldestOf(evictable);
      if (place === null || place === newest) {
        // The largest may have less by now. A look at all holders is not needed for each copy.
        evictable = this.#evictable();
        place = oldestOf(evictable) ?? newest;
      }
      if (this.#handOver(place)) continue;
      this.#evict(place);
      if (place === newest) return false;
    }
    return true;
  }

  /** Whether there is room for the copy once all copies are evicted that may be for it. */
  #fits({ line: own, value }: Place<V>): boolean {
    const left = this.#leftToOthers(value.bytes);
    let missing = this.#bytes - this.maxBytes - (own.bytes - value.bytes);
    for (const line of this.#lines.values()) {
      if (line === own) continue;
      let { bytes } = line;
      for (let place = line.oldest; place !== null && bytes > left && missing > 0; place = place.newer) {
        bytes -= place.value.bytes;
        missing -= place.value.bytes;
      }
    }
    return missing <= 0;
  }

  #evictable(): Evictable<V> {
    let most = 0;
    for (const { bytes } of this.#lines.values()) most = Math.max(most, bytes);
    const left = this.#leftToOthers(most);
    return { lines: [...this.#lines.values()].filter(({ bytes }) => bytes > left), left };
  }

  /** How much of any other holder is not evicted for one of that much. */
  #leftToOthers(bytes: number): number {
    return Math.max(this.maxBytes / this.#lines.size, bytes / 2);
  }

  /** Charges the copy to its other user, if that has less all the same. */
  #handOver(place: Place<V>): boolean {
    const { line, other, value } = place;
    if (other === null || (this.#lines.get(other)?.bytes ?? 0) + value.bytes >= line.bytes) return false;
    this.#discharge(place);
    place.other = line.holder;
    this.#charge(place, this.#lineOf(other));
    return true;
  }

  #lineOf(holder: string): Line<V> {
    return this.#lines.get(holder) ?? new Line(holder);
  }

  #charge(place: Place<V>, line: Line<V>): void {
    line.add(place);
    place.line = line;
    this.#lines.set(line.holder, line);
    this.#bytes += place.value.bytes;
  }

  #discharge(place: Place<V>): void {
    const { line, value } = place;
    line.remove(place);
    if (line.oldest === null) this.#lines.delete(line.holder);
    this.#bytes -= value.bytes;
  }

  #evict(place: Place<V>): void {
    this.#remove(place);
    this.#onEvicted(place.key, place.value);
  }

  #remove(place: Place<V>): void {
    this.#discharge(place);
    this.#places.delete(place.key);
  }

  #nowMicros(): number {
    this.#lastMicros = Math.max(this.#lastMicros + 1, this.#clock.nowMicros());
    return this.#lastMicros;
  }
}

/** The holders whose copies may be evicted, and how much each of them keeps. */
interface Evictable<V extends Weighed> {
  readonly lines: readonly Line<V>[];
  readonly left: number;
}

function oldestOf<V extends Weighed>({ lines, left }: Evictable<V>): Place<V> | null {
  let found: Place<V> | null = null;
  for (const { bytes, oldest } of lines) {
    if (oldest !== null && bytes > left && (found === null || oldest.usedMicros < found.usedMicros)) found = oldest;
  }
  return found;
}

/** The copies that one holder is charged for, in the order of their use. */
class Line<V extends Weighed> {
  readonly holder: string;
  bytes = 0;
  oldest: Place<V> | null = null;
  #newest: Place<V> | null = null;

  constructor(holder: string) {
    this.holder = holder;
  }

  add(place: Place<V>): void {
    place.older = this.#newest;
    place.newer = null;
    if (this.#newest === null) this.oldest = place;
    else this.#newest.newer = place;
    this.#newest = place;
    this.bytes += place.value.bytes;
  }

  remove(place: Place<V>): void {
    const { older, newer } = place;
    if (older === null) this.oldest = newer;
    else older.newer = newer;
    if (newer === null) this.#newest = older;
    else newer.older = older;
    this.bytes -= place.value.bytes;
  }

  moveToEnd(place: Place<V>): void {
    if (this.#newest === place) return;
    this.remove(place);
    this.add(place);
  }
}
