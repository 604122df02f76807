import type { ApiKey } from './key.ts';

/** Compares keys for the order of lists: by creation, those of the same millisecond by id. */
export function inOrderOfCreation(a: ApiKey, b: ApiKey): number {
  if (a.createdAtMs !== b.createdAtMs) return a.createdAtMs - b.createdAtMs;
  return a.keyId < b.keyId ? -1 : 1;
}
