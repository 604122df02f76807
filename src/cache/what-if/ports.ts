/** How the what-if models of a fleet reach each other. Everything may be lost, and whoever waits waits in vain. */

/** Messages between processes, by their ids. */
export interface Messages {
  /** Whether any can be sent now. */
  isUp(): boolean;
  /** May reject, and may resolve without having reached anybody. */
  send(to: string, message: string): Promise<unknown>;
  /** Hears what is sent to this process. Returns a function that ends this. */
  listen(listener: (message: string) => void): () => void;
}

/** Where each process leaves its word for the others. */
export interface Board {
  isUp(): boolean;
  /** In the place of what this process has left before; for that time. May reject. */
  post(text: string, keptForMs: number): Promise<unknown>;
  /** What these have left, in their order; null where there is nothing. May reject. */
  read(ids: readonly string[]): Promise<readonly (string | null)[]>;
  /** Takes away what this process has left. May reject. */
  clear(): Promise<unknown>;
}
