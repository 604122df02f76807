import { expect, test } from 'vitest';
import type { Fleet, FlightFailure, Lease } from '../../../src/cache/ports.ts';
import { WORKSPACE_A } from '../../support/records.ts';
import { aStoredEvaluation, keyOfEvaluation } from '../../support/stored-entry.ts';

export interface LeaseWorld {
  /** What two processes of one fleet see. */
  readonly one: Fleet;
  readonly two: Fleet;
  /** How long a lease holds without being renewed. */
  readonly leaseMs: number;
  /** Lets that much time go by. */
  readonly pass: (ms: number) => Promise<void>;
}

/** What every implementation of the leases does. `create` gives an empty world that clears up after itself. */
export function leasesContract(create: () => LeaseWorld | Promise<LeaseWorld>): void {
  const key = keyOfEvaluation('ev_1');
  const failure: FlightFailure = {
    kind: 'refused',
    message: 'HTTP 503',
    retryAfterMs: 2000,
    status: 503,
    workspaceId: WORKSPACE_A,
  };

  async function acquired(fleet: Fleet): Promise<Lease> {
    const attempt = await fleet.leases.acquire(key);
    if (attempt.kind !== 'acquired') throw new Error(`the lease is ${attempt.kind}`);
    return attempt.lease;
  }

  test('one process gets the lease, the other hears that it is taken; other keys are free', async () => {
    const { one, two } = await create();
    await acquired(one);
    expect(await two.leases.acquire(key)).toEqual({ kind: 'taken' });
    expect(await one.leases.acquire(key)).toEqual({ kind: 'taken' });
    expect((await two.leases.acquire(keyOfEvaluation('ev_2'))).kind).toBe('acquired');
  });

  test('completing stores the entry and ends the lease', async () => {
    const { one, two } = await create();
    const lease = await acquired(one);
    const stored = aStoredEvaluation(Date.now());
    expect(await lease.complete(stored)).toBe(true);
    expect((await two.tier.get(key))?.entry.answer).toEqual(stored.entry.answer);
    expect((await two.leases.acquire(key)).kind).toBe('acquired');
  });

  test('who gets the lease is told what is stored as it begins', async () => {
    const { one, two } = await create();
    const nothing = await one.leases.acquire(key);
    if (nothing.kind !== 'acquired') throw new Error(`the lease is ${nothing.kind}`);
    expect(nothing.stored).toBeUndefined();
    const stored = aStoredEvaluation(Date.now());
    await nothing.lease.complete(stored);
    const attempt = await two.leases.acquire(key);
    if (attempt.kind !== 'acquired') throw new Error(`the lease is ${attempt.kind}`);
    expect(attempt.stored?.entry.answer).toEqual(stored.entry.answer);
    expect(attempt.stored?.entry.filledAtMs).toBe(stored.entry.filledAtMs);
  });

  test('releasing ends the lease and stores nothing', async () => {
    const { one, two } = await create();
    await (await acquired(one)).release();
    expect(await two.tier.get(key)).toBeUndefined();
    expect((await two.leases.acquire(key)).kind).toBe('acquired');
  });

  test('a lease that is not renewed lapses, and its holder can store nothing any more', async () => {
    const { one, two, leaseMs, pass } = await create();
    const late = await acquired(one);
    await pass(leaseMs + 1);
    const lease = await acquired(two);
    const stored = aStoredEvaluation(Date.now(), { title: 'New' });
    expect(await late.renew()).toBe(false);
    expect(await late.complete(aStoredEvaluation(Date.now(), { title: 'Late' }))).toBe(false);
    await late.fail(failure);
    await late.release();
    expect(await lease.complete(stored)).toBe(true);
    expect((await one.tier.get(key))?.entry.answer).toEqual(stored.entry.answer);
  });

  test('a lease that lapsed and that nobody took is lost all the same', async () => {
    const { one, leaseMs, pass } = await create();
    const late = await acquired(one);
    await pass(leaseMs + 1);
    expect(await late.complete(aStoredEvaluation(Date.now()))).toBe(false);
    expect(await one.tier.get(key)).toBeUndefined();
  });

  test('a lease that is renewed goes on', async () => {
    const { one, two, leaseMs, pass } = await create();
    const lease = await acquired(one);
    await pass(leaseMs * 0.7);
    expect(await lease.renew()).toBe(true);
    await pass(leaseMs * 0.7);
    expect(await two.leases.acquire(key)).toEqual({ kind: 'taken' });
    expect(await lease.complete(aStoredEvaluation(Date.now()))).toBe(true);
  });

  test('who follows is told of the end, also where it came before the first question', async () => {
    const { one, two, pass } = await create();
    const lease = await acquired(one);
    const waiting = await two.leases.follow(key);
    const late = await two.leases.follow(key);
    const next = waiting.next(10_000);
    await lease.complete(aStoredEvaluation(Date.now()));
    expect(await next).toEqual({ kind: 'stored' });
    await pass(50);
    expect(await late.next(10_000)).toEqual({ kind: 'stored' });
    waiting.close();
    late.close();
  });

  test('who follows hears nothing of other keys, and gets null when the time is up', async () => {
    const { one, two, pass } = await create();
    const following = await two.leases.follow(keyOfEvaluation('ev_2'));
    await (await acquired(one)).complete(aStoredEvaluation(Date.now()));
    const next = following.next(100);
    await pass(100);
    expect(await next).toBeNull();
    following.close();
  });

  test('a failure is told to who follows and, for 1 s, to who wants the lease', async () => {
    const { one, two, pass } = await create();
    const lease = await acquired(one);
    const following = await two.leases.follow(key);
    await lease.fail(failure);
    expect(await following.next(10_000)).toEqual({ kind: 'failed', failure });
    following.close();
    expect(await two.leases.acquire(key)).toEqual({ kind: 'failed', failure });
    await pass(1001);
    expect((await two.leases.acquire(key)).kind).toBe('acquired');
  });

  test('other processes hear of what was stored, until they stop listening; the one that stored it does not', async () => {
    const { one, two, pass } = await create();
    const heard: unknown[] = [];
    one.onStored(() => heard.push('the process itself'));
    const stop = two.onStored((storedKey, filledAtMs) => heard.push([storedKey, filledAtMs]));
    const filledAtMs = Date.now();
    await (await acquired(one)).complete(aStoredEvaluation(filledAtMs));
    await pass(100);
    stop();
    await (await acquired(one)).complete(aStoredEvaluation(filledAtMs + 1));
    await pass(100);
    expect(heard).toEqual([[key, filledAtMs]]);
  });
}
