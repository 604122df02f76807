/** What the guard reports of its work, for logs and metrics. Nothing here changes what it does; hooks never throw. */
import type { StoreResource } from '../question.ts';
import type { StoreError } from '../store.ts';

/**
 * Why a call was not sent:
 * - `queue-full`: as many calls as may wait were waiting
 * - `queue-timeout`: it had waited as long as it may
 * - `store-failing`: too many of the last calls had failed
 */
export type GuardRefusal = 'queue-full' | 'queue-timeout' | 'store-failing';

/** `over-budget`: it was not repeated, because too many others were. */
export type RetryOutcome = 'answered' | 'failed' | 'over-budget';

export interface GuardHooks {
  onRefused?(refusal: { readonly resource: StoreResource; readonly reason: GuardRefusal }): void;
  /** A call got its turn. */
  onTurnTaken?(turn: { readonly waitedMs: number }): void;
  onRetry?(retry: { readonly outcome: RetryOutcome }): void;
  /** Calls are held back from now on; the error is the last of those that were too many. */
  onOpened?(error: StoreError): void;
  /** Calls are sent again. */
  onClosed?(): void;
}

/** How the guard is doing at this moment. */
export interface GuardStatus {
  /** Whether calls are held back because the store fails. */
  readonly isOpen: boolean;
  readonly inFlight: number;
  readonly queued: number;
}
