/** Whether something answers, as far as is known, and who is told when that changes. */
import { EventEmitter } from 'node:events';

interface UpDownEvents {
  readonly up: [];
  readonly down: [reason: Error];
}

export class UpDown {
  readonly #events = new EventEmitter<UpDownEvents>();
  /** Unknown until it first answers, or first doesn't. */
  #state: 'unknown' | 'up' | 'down' = 'unknown';

  constructor() {
    this.#events.setMaxListeners(0);
  }

  isUp(): boolean {
    return this.#state === 'up';
  }

  /** Calls back at each change to up; returns a function that ends this. */
  onUp(listener: () => void): () => void {
    this.#events.on('up', listener);
    return () => this.#events.off('up', listener);
  }

  /** Calls back at each change to down; returns a function that ends this. */
  onDown(listener: (reason: Error) => void): () => void {
    this.#events.on('down', listener);
    return () => this.#events.off('down', listener);
  }

  setUp(): void {
    if (this.#state === 'up') return;
    this.#state = 'up';
    this.#events.emit('up');
  }

  setDown(reason: Error): void {
    if (this.#state === 'down') return;
    this.#state = 'down';
    this.#events.emit('down', reason);
  }

  /** Listeners hear nothing more. */
  close(): void {
    this.#events.removeAllListeners();
    this.#state = 'down';
  }
}
