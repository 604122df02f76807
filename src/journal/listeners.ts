/** Who in a process follows the journal, and passing events on to them. */
import type { Apply, EventKind, EventOf, JournalEvent, Position, Snapshot } from './journal.ts';

type AnyApply = (event: JournalEvent, position: Position) => void;

export class Listeners {
  readonly #appliers = new Map<EventKind, Set<AnyApply>>();
  readonly #restorers = new Set<(snapshot: Snapshot) => void>();

  on<K extends EventKind>(kind: K, apply: Apply<K>): () => void {
    const appliers = this.#appliers.get(kind) ?? new Set();
    this.#appliers.set(kind, appliers);
    const one: AnyApply = (event, position) => {
      if (isOf(kind, event)) apply(event, position);
    };
    appliers.add(one);
    return () => appliers.delete(one);
  }

  onSnapshot(listener: (snapshot: Snapshot) => void): () => void {
    this.#restorers.add(listener);
    return () => this.#restorers.delete(listener);
  }

  apply(event: JournalEvent, position: Position): void {
    for (const apply of this.#appliers.get(event.kind) ?? []) apply(event, position);
  }

  restore(snapshot: Snapshot): void {
    for (const listener of this.#restorers) listener(snapshot);
  }
}

function isOf<K extends EventKind>(kind: K, event: JournalEvent): event is JournalEvent & EventOf<K> {
  return event.kind === kind;
}
