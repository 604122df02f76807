/** The shared cache of the flights' unit tests, which is plain code, answers as the scripts in Redis do. */
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { afterAll, expect, inject, test } from 'vitest';
import { type WorkspaceSet, workspaceSetOf } from '../../src/cache/address.ts';
import { Entry, type StoredEntry } from '../../src/cache/entry.ts';
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import { recordRequest } from '../../src/cache/request.ts';
import { type Lease, type SharedCache, toFailure } from '../../src/cache/shared-cache.ts';
import { CacheNames } from '../../src/redis/names.ts';
import { StoreError } from '../../src/upstream/store-error.ts';
import { FakeRedis, FakeSharedCache, FakeTime } from '../support/flight-world.ts';
import { forFile } from '../support/opened.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { connectToAny } from '../support/redis/client.ts';
import { openProcess } from '../support/redis/shared-cache.ts';
import { startRedis } from '../support/redis.ts';

const SETS = [[WORKSPACE_A], [WORKSPACE_B], [WORKSPACE_A, WORKSPACE_B]].map((workspaceIds) =>
  workspaceSetOf({ workspaceIds }),
);
/** Leases and failures end by what the history does alone: nothing here may go by how fast the machine is. */
const LEASE_MS = 600_000;
const FIRST_MS = Date.UTC(2026, 0, 15);
const FAILURE = toFailure(new StoreError('unreachable', 'the store is down'));

const redis = await forFile(startRedis());
const raw = await connectToAny(redis.url);
afterAll(() => raw.disconnect());
const names = new CacheNames('store');
const ofProcess = { url: redis.url, names, leaseMs: LEASE_MS };
const processes = [await openProcess(ofProcess), await openProcess(ofProcess)];

const anAge = fc.integer({ min: FIRST_MS, max: FIRST_MS + 5 });
const aLook = fc.record({
  do: fc.constant('look'),
  process: fc.nat({ max: processes.length - 1 }),
  set: fc.constantFrom(...SETS),
  seenAtMs: fc.option(anAge),
  isLeaseWanted: fc.boolean(),
});
/** `lease`: any number, for one of those that were granted before. */
const anAnswer = fc.record({
  do: fc.constant('complete'),
  lease: fc.nat(),
  requestedAtMs: anAge,
  workspaceId: fc.constantFrom(WORKSPACE_A, WORKSPACE_B, null),
});
const anEnd = fc.record({ do: fc.constantFrom('fail', 'release'), lease: fc.nat() });
const aStep = fc.oneof(
  { weight: 2, arbitrary: aLook },
  { weight: 2, arbitrary: anAnswer },
  { weight: 1, arbitrary: anEnd },
);
type Step = typeof aStep extends fc.Arbitrary<infer S> ? S : never;

/** One shared cache as two processes use it for one record, and the leases that it has granted. */
class Side {
  readonly #shared: readonly SharedCache[];
  readonly #id: string;
  readonly #leases: { readonly set: WorkspaceSet; readonly lease: Lease }[] = [];

  constructor(shared: readonly SharedCache[], id: string) {
    this.#shared = shared;
    this.#id = id;
  }

  /** Returns what the process goes by that has taken the step. */
  async take(step: Step): Promise<unknown> {
    if (step.do === 'look') return await this.#look(step);
    const granted = this.#leases[step.lease % Math.max(1, this.#leases.length)];
    if (granted === undefined) return null;
    const { set, lease } = granted;
    if (step.do === 'complete') {
      const { status, ended } = await lease.complete(answerFor(set, this.#id, step));
      return { status, ended: ended.toSorted() };
    }
    return await (step.do === 'fail' ? lease.fail(FAILURE) : lease.release());
  }

  /** Ends all that is left. */
  async close(): Promise<void> {
    for (const { lease } of this.#leases) await lease.release();
  }

  async #look({ process, set, seenAtMs, isLeaseWanted }: Step & { readonly do: 'look' }): Promise<unknown> {
    const { key } = recordRequest('evaluation', this.#id);
    const look = { kind: 'evaluation', key, set, keyId: 'key_1', seenAtMs, isLeaseWanted } as const;
    const looked = await this.#shared[process]?.look(look);
    if (looked?.status === 'leased') this.#leases.push({ set, lease: looked.lease });
    if (looked?.status !== 'found') return looked?.status;
    const { owner, entry } = looked.answer ?? {};
    return [owner, entry?.answer.kind, entry?.requestedAtMs, looked.seenAtMs];
  }
}

/** The store's answer that the evaluation is of that workspace; one of another workspace, or none, is filed as absent (C4). */
function answerFor(
  set: WorkspaceSet,
  id: string,
  { requestedAtMs, workspaceId }: { readonly requestedAtMs: number; readonly workspaceId: string | null },
): StoredEntry {
  const about = {
    kind: 'evaluation',
    tags: ['all'],
    position: { history: 'one', sequence: 5 },
    receivedAtMs: requestedAtMs,
  } as const;
  if (workspaceId === null || !set.ids.includes(workspaceId)) {
    return {
      ...about,
      owner: set.name,
      entry: new Entry<unknown>({ kind: 'absent', code: 'NOT_FOUND' }, requestedAtMs),
    };
  }
  const record = anEvaluation({ _id: id, workspaceId });
  const answer = { kind: 'found', record, etag: null, bytes: 500 } as const;
  return { ...about, owner: workspaceId, entry: new Entry<unknown>(answer, requestedAtMs) };
}

test('in every history of looks, answers and failures by two processes', async () => {
  const inRedis = processes.map(({ shared }) => shared);
  await fc.assert(
    fc.asyncProperty(fc.array(aStep, { minLength: 5, maxLength: 25 }), async (history) => {
      const id = `ev_${randomUUID()}`;
      const sides = [new Side(inRedis, id), new Side(inCode(), id)];
      for (const step of history) {
        const [real, fake] = await Promise.all(sides.map((side) => side.take(step)));
        expect(fake).toEqual(real);
        // A failure is forgotten after a second of the real time.
        for (const { name } of SETS) await raw.persist(names.of(recordRequest('evaluation', id).key).failure(name));
      }
      for (const side of sides) await side.close();
    }),
    { numRuns: 60 * inject('thoroughness') },
  );
});

function inCode(): readonly SharedCache[] {
  const time = new FakeTime();
  const shared = new FakeRedis(time);
  return processes.map(() => new FakeSharedCache(shared, new MemoryTier({ maxBytes: 1_000_000, clock: time })));
}
