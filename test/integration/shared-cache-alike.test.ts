/** The shared cache of the flights' unit tests, which is plain code, answers as the scripts in Redis do. */
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { afterAll, expect, inject, test } from 'vitest';
import { workspaceSetOf } from '../../src/cache/address.ts';
import { Entry, type StoredEntry } from '../../src/cache/entry.ts';
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import { recordRequest } from '../../src/cache/request.ts';
import { type Completion, type Lease, type Looked, type SharedCache, toFailure } from '../../src/cache/shared-cache.ts';
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

const aProcess = fc.nat({ max: processes.length - 1 });
const anAge = fc.nat({ max: 5 });
const aStep = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('look'),
      process: aProcess,
      set: fc.constantFrom(...SETS),
      seen: fc.option(anAge),
      isLeaseWanted: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('complete'),
      lease: fc.nat(),
      requested: anAge,
      owner: fc.constantFrom(WORKSPACE_A, WORKSPACE_B, null),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail'), lease: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('release'), lease: fc.nat() }) },
);

/** One shared cache, as two processes use it, and the leases that it has granted. */
class Side {
  readonly #shared: readonly SharedCache[];
  readonly #key: string;
  readonly leases: { readonly set: (typeof SETS)[number]; readonly lease: Lease }[] = [];

  constructor(shared: readonly SharedCache[], key: string) {
    this.#shared = shared;
    this.#key = key;
  }

  async look(process: number, set: (typeof SETS)[number], seenAtMs: number | null, isLeaseWanted: boolean) {
    const look = { kind: 'evaluation', key: this.#key, set, keyId: 'key_1', seenAtMs, isLeaseWanted } as const;
    const looked = await this.#shared[process]?.look(look);
    if (looked === undefined) throw new Error(`there is no process ${process}`);
    if (looked.status === 'leased') this.leases.push({ set, lease: looked.lease });
    return shown(looked);
  }
}

/** The parts of a look that a reader goes by, without those that differ from one cache to the other by nature. */
function shown(looked: Looked): unknown {
  if (looked.status !== 'found') return looked.status;
  const { answer, seenAtMs } = looked;
  return [answer?.owner, answer?.entry.answer.kind, answer?.entry.requestedAtMs, seenAtMs];
}

/** The store's answer that the evaluation is of that workspace; one of another workspace, or none, is filed as absent (C4). */
function answerFor(
  set: (typeof SETS)[number],
  id: string,
  requestedAtMs: number,
  workspaceId: string | null,
): StoredEntry {
  const isOwn = workspaceId !== null && set.ids.includes(workspaceId);
  const record = anEvaluation({ _id: id, workspaceId });
  const answer = isOwn
    ? ({ kind: 'found', record, etag: null, bytes: 500 } as const)
    : ({ kind: 'absent', code: 'NOT_FOUND' } as const);
  return {
    kind: 'evaluation',
    owner: isOwn ? workspaceId : set.name,
    entry: new Entry<unknown>(answer, requestedAtMs),
    tags: ['all'],
    position: { history: 'one', sequence: 5 },
    receivedAtMs: requestedAtMs,
  };
}

function ended({ status, ended: owners }: Completion): unknown {
  return { status, ended: owners.toSorted() };
}

test('in every history of looks, answers and failures by two processes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(aStep, { minLength: 5, maxLength: 25 }), async (history) => {
      const id = `ev_${randomUUID()}`;
      const { key } = recordRequest('evaluation', id);
      const [inRedis, inCode] = [
        new Side(
          processes.map(({ shared }) => shared),
          key,
        ),
        new Side(fakes(), key),
      ];
      for (const step of history) {
        if (step.do === 'look') {
          const { process, set, seen, isLeaseWanted } = step;
          const seenAtMs = seen === null ? null : FIRST_MS + seen;
          expect(await inCode.look(process, set, seenAtMs, isLeaseWanted)).toEqual(
            await inRedis.look(process, set, seenAtMs, isLeaseWanted),
          );
          continue;
        }
        const at = inRedis.leases.length === 0 ? 0 : step.lease % inRedis.leases.length;
        const [real, fake] = [inRedis.leases[at], inCode.leases[at]];
        if (real === undefined || fake === undefined) continue;
        const { set } = real;
        if (step.do === 'complete') {
          const { owner, requested } = step;
          const answer = answerFor(set, id, FIRST_MS + requested, owner);
          expect(ended(await fake.lease.complete(answer))).toEqual(ended(await real.lease.complete(answer)));
        } else if (step.do === 'fail') {
          await Promise.all([real.lease.fail(FAILURE), fake.lease.fail(FAILURE)]);
          await raw.persist(names.of(key).failure(set.name));
        } else await Promise.all([real.lease.release(), fake.lease.release()]);
      }
      for (const { lease } of inRedis.leases) await lease.release();
    }),
    { numRuns: 60 * inject('thoroughness') },
  );
});

function fakes(): readonly SharedCache[] {
  const time = new FakeTime();
  const shared = new FakeRedis(time);
  return processes.map(() => new FakeSharedCache(shared, new MemoryTier({ maxBytes: 1_000_000, clock: time })));
}
