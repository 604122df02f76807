/** One deadline for a whole exchange: name look-up, connection, headers and the last byte of the body. */
import { StoreError } from './store.ts';

export interface Deadline {
  /** Aborts when the time is over or a caller's signal does; its reason is then a StoreError. */
  readonly signal: AbortSignal;
  /** Ends the call at once, for the client's own shutdown. */
  abort(): void;
  /** Frees the timer and the listeners. Call it when the exchange is over, however it ended. */
  end(): void;
}

/** `callerSignal` is the caller's own wish to stop; an already aborted one ends the exchange before it begins. */
export function startDeadline(timeoutMs: number, callerSignal: AbortSignal | undefined): Deadline {
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(new StoreError('aborted', 'the call was abandoned before the store had answered'));
  };
  const timer = setTimeout(() => {
    controller.abort(new StoreError('timeout', `the store gave no whole answer within ${timeoutMs} ms`));
  }, timeoutMs);
  if (callerSignal?.aborted === true) abort();
  else callerSignal?.addEventListener('abort', abort, { once: true });
  return {
    signal: controller.signal,
    abort,
    end: () => {
      clearTimeout(timer);
      callerSignal?.removeEventListener('abort', abort);
    },
  };
}
