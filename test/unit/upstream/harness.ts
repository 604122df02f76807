/** A client against a server of its own, both closed when the test that opened them is over. */
import { onTestFinished } from 'vitest';

import {
  createHttpStore,
  type HttpStore,
  type HttpStoreOptions,
  type RecordLeftOut,
  type StoreCall,
} from '../../../src/upstream/http-store.ts';
import { StoreError, type FetchOptions, type Found, type StoreAnswer } from '../../../src/upstream/store.ts';
import { createEvilStore, type Evil, type EvilStore } from '../../support/evil-store.ts';
import { createStoreServer, type StoreServer } from '../../support/store-server.ts';

export const MEGABYTE = 1024 * 1024;
export const ASKED: FetchOptions = { requestId: 'request-1' };

export interface ClientUnderTest {
  readonly client: HttpStore;
  readonly calls: StoreCall[];
  readonly leftOut: RecordLeftOut[];
}

export function openClient(options: Partial<HttpStoreOptions> & { readonly baseUrl: string }): ClientUnderTest {
  const calls: StoreCall[] = [];
  const leftOut: RecordLeftOut[] = [];
  const client = createHttpStore({
    token: 'a-token',
    timeoutMs: 5000,
    maxResponseBytes: 8 * MEGABYTE,
    maxConnections: 8,
    hooks: { onCall: (call) => calls.push(call), onRecordLeftOut: (record) => leftOut.push(record) },
    ...options,
  });
  onTestFinished(() => client.close());
  return { client, calls, leftOut };
}

/** A well-behaved store and its client. */
export async function openStore(
  options: Partial<HttpStoreOptions> = {},
): Promise<ClientUnderTest & { readonly store: StoreServer }> {
  const store = await createStoreServer();
  onTestFinished(() => store.close());
  return { store, ...openClient({ baseUrl: store.url, token: store.token, ...options }) };
}

/** A misbehaving store and its client. */
export async function openEvilStore(
  evil: Evil,
  options: Partial<HttpStoreOptions> = {},
): Promise<ClientUnderTest & { readonly store: EvilStore }> {
  const store = await createEvilStore(evil);
  onTestFinished(() => store.close());
  return { store, ...openClient({ baseUrl: store.url, ...options }) };
}

/** The StoreError that the call rejects with; anything else fails the test. */
export async function failureOf(call: Promise<unknown>): Promise<StoreError> {
  const outcome: unknown = await call.then(
    () => new Error('the call did not fail'),
    (error: unknown) => error,
  );
  if (outcome instanceof StoreError) return outcome;
  throw outcome;
}

/** The record of an answer that must be one. */
export async function recordOf<T>(call: Promise<StoreAnswer<T>>): Promise<T> {
  return (await foundOf(call)).record;
}

export async function foundOf<T>(call: Promise<StoreAnswer<T>>): Promise<Found<T>> {
  const answer = await call;
  if (answer.kind !== 'found') throw new Error(`the store answered ${answer.kind}`);
  return answer;
}
