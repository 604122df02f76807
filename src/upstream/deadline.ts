/** One deadline for a whole exchange: name look-up, connection, headers and the last byte of the body. */
import { StoreError } from './store.ts';

/** Each call that waits for the store has one: an AbortController with its signal and listener is several objects more. */
export class Deadline {
  readonly #timer: NodeJS.Timeout;
  #reason: StoreError | null = null;
  #onOver: (() => void) | null = null;

  constructor(timeoutMs: number) {
    this.#timer = setTimeout(() => {
      this.#end(new StoreError('timeout', `the store gave no whole answer within ${timeoutMs} ms`));
    }, timeoutMs);
  }

  /** Throws the StoreError that tells why it is over, where it is. */
  throwIfOver(): void {
    if (this.#reason !== null) throw this.#reason;
  }

  /** What is to be done as soon as it is over, in place of what was; null for nothing. */
  whenOver(run: (() => void) | null): void {
    this.#onOver = run;
  }

  /** Ends the call at once, for the client's own shutdown. */
  abort(): void {
    this.#end(new StoreError('aborted', 'the call was abandoned before the store had answered'));
  }

  /** Frees the timer. Call it when the exchange is over, however it ended. */
  clear(): void {
    clearTimeout(this.#timer);
  }

  #end(reason: StoreError): void {
    if (this.#reason !== null) return;
    this.#reason = reason;
    this.#onOver?.();
  }
}
