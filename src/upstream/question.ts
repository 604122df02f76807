/** One question to the store: where it is asked, which answers it may have, and how its record is read. */
import type { Absent, ResourceKind } from './store.ts';

/** What the store is asked for, API keys included. */
export type StoreResource = ResourceKind | 'apiKey';

export interface Question<T> {
  readonly resource: StoreResource;
  /** Path and query below the store's base address. */
  readonly path: string;
  /** The codes with which a 404 is an answer; any other 404 is a failure of the store. */
  readonly absentCodes: readonly Absent['code'][];
  /** The record in a 200's JSON. Throws a StoreError of kind `malformed`, or rejects with one. */
  readonly read: (value: unknown) => T | Promise<T>;
}

export const ROOT_PATH = '/internal/v1';
