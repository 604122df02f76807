import type { Board, Messages } from '../../src/cache/what-if/ports.ts';

/** What the what-if models of a fleet reach each other by, inside one test process. What is sent arrives at once. */
export class WhatIfWire {
  /** Nobody can be told anything, and everybody knows. */
  isDown = false;
  /** Sending and asking fails, and nobody knows yet. */
  isFailing = false;
  /** All that was sent, in order. */
  readonly sent: { readonly to: string; readonly message: string }[] = [];
  /** How often each process has left its word. */
  readonly posts: string[] = [];
  readonly board = new Map<string, string>();
  readonly #listeners = new Map<string, Set<(message: string) => void>>();

  messages(self: string): Messages {
    return {
      isUp: () => !this.isDown,
      send: async (to, message) => {
        if (this.isFailing) throw new Error('the wire is cut');
        this.sent.push({ to, message });
        this.deliver(to, message);
      },
      listen: (listener) => {
        const listeners = this.#listeners.get(self) ?? new Set();
        this.#listeners.set(self, listeners.add(listener));
        return () => listeners.delete(listener);
      },
    };
  }

  boardOf(self: string): Board {
    const up = async <T>(run: () => T): Promise<T> => {
      if (this.isFailing) throw new Error('the board is out of reach');
      return run();
    };
    return {
      isUp: () => !this.isDown,
      post: (text) =>
        up(() => {
          this.posts.push(self);
          this.board.set(self, text);
        }),
      read: (ids) => up(() => ids.map((id) => this.board.get(id) ?? null)),
      clear: () => up(() => this.board.delete(self)),
    };
  }

  deliver(to: string, message: string): void {
    for (const listener of this.#listeners.get(to) ?? []) listener(message);
  }
}
