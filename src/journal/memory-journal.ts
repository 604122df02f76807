/** The journal of a gateway without Redis: its one process applies each event as it is appended, and keeps none. */
import type { Apply, EventKind, Journal, JournalEvent, Position, Snapshot } from './journal.ts';
import { Listeners } from './listeners.ts';

export class MemoryJournal implements Journal {
  readonly isJoined = true;
  readonly #listeners = new Listeners();
  #position: Position = { history: 'memory', sequence: 0 };

  get position(): Position {
    return this.#position;
  }

  isProven(): boolean {
    return true;
  }

  prove(): null {
    return null;
  }

  async append(event: JournalEvent): Promise<boolean> {
    this.#position = { ...this.#position, sequence: this.#position.sequence + 1 };
    this.#listeners.apply(event, this.#position);
    return true;
  }

  on<K extends EventKind>(kind: K, apply: Apply<K>): () => void {
    return this.#listeners.on(kind, apply);
  }

  onSnapshot(listener: (snapshot: Snapshot) => void): () => void {
    return this.#listeners.onSnapshot(listener);
  }

  async catchUp(): Promise<void> {}
}
