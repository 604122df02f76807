/** A failed flight as it travels between processes. */
import { StoreError } from '../upstream/store.ts';
import type { FlightFailure } from './ports.ts';

export function toFailure({ kind, message, retryAfterMs, status, workspaceId }: StoreError): FlightFailure {
  return { kind, message, retryAfterMs, status, workspaceId };
}

export function fromFailure({ kind, message, retryAfterMs, status, workspaceId }: FlightFailure): StoreError {
  return new StoreError(kind, message, { retryAfterMs, status, workspaceId });
}

/** What a reader is told: readers know no other errors than the store's. */
export function asStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError('invalidResponse', 'the store client failed in a way that its interface does not know', {
    cause: error,
  });
}
