import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CacheRead } from '../../../src/cache/reader.ts';
import type { Tag } from '../../../src/cache/tags.ts';
import type { EvaluationRecord } from '../../../src/domain/records.ts';
import { StoreError, type StoreAnswer } from '../../../src/upstream/store.ts';
import { CONTEXT, createRig, recordOf, type Rig, TEST_TIMES } from '../../support/cache-rig.ts';
import { ManualTimers, settle } from '../../support/manual-timers.ts';
import { MemoryFleet } from '../../support/memory-fleet.ts';
import { promised } from '../../support/promised.ts';
import { anEvaluation, WORKSPACE_A } from '../../support/records.ts';

const QUERY = { workspaceIds: [WORKSPACE_A], search: null, scorecardId: null, offset: 0, limit: 50 };
const IDS = ['ev_0', 'ev_1'] as const;
const MAX_AGE_MS = TEST_TIMES.freshMs + TEST_TIMES.errorMs;

type Subject = (typeof IDS)[number] | 'list';
type Action =
  | { readonly do: 'read'; readonly subject: Subject; readonly process: number }
  | { readonly do: 'answer'; readonly call: number; readonly how: 'found' | 'absent' | 'failed' }
  | { readonly do: 'purge'; readonly tag: Tag; readonly mode: 'soft' | 'hard' }
  | { readonly do: 'pass'; readonly ms: number };

const subject = fc.constantFrom<Subject>(...IDS, 'list');
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('read' as const), subject, process: fc.nat({ max: 1 }) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      call: fc.nat({ max: 3 }),
      how: fc.constantFrom('found' as const, 'found' as const, 'absent' as const, 'failed' as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('purge' as const),
      tag: fc.constantFrom<Tag>('all', 'class:evaluation', 'class:list', 'evaluation:ev_0', `workspace:${WORKSPACE_A}`),
      mode: fc.constantFrom('soft' as const, 'hard' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 400, 1100, 9500, 25_000, 90_000) }),
  },
);

/** The tags that every answer to a subject has. */
function tagsOf(of: Subject): readonly Tag[] {
  if (of === 'list') return ['all', 'class:list', `workspace:${WORKSPACE_A}`];
  return ['all', 'class:evaluation', `evaluation:${of}`, `workspace:${WORKSPACE_A}`];
}

interface Call {
  readonly subject: Subject;
  /** Number of the action during which it was made. */
  readonly madeAt: number;
  readonly answer: (how: 'found' | 'absent' | 'failed') => void;
}

interface Purge {
  readonly tag: Tag;
  readonly madeAt: number;
}

/** Plays a history against a cache and checks every answer against what had happened when its reader came. */
class World {
  readonly timers = new ManualTimers();
  readonly processes: readonly Rig[];
  readonly #pending: Call[] = [];
  readonly #calls: Call[] = [];
  readonly #hardPurges: Purge[] = [];
  #now = 0;
  #unanswered = 0;

  constructor(isFleet: boolean) {
    // One fetch can be slow here beyond any deadline.
    const options = { timers: this.timers, flightDeadlineMs: 1e9 };
    const fleet = new MemoryFleet(this.timers);
    const first = createRig(isFleet ? { ...options, fleet } : options);
    this.processes = isFleet ? [first, createRig({ ...options, fleet, beside: first })] : [first];
    first.store.evaluation = (id) => this.#ask(id === 'ev_0' ? 'ev_0' : 'ev_1', (title) => recordWith(id, title));
    first.store.list = () =>
      this.#ask('list', (title) => ({ items: IDS.map((id) => recordWith(id, title)), total: 2 }));
  }

  async play(step: Action): Promise<void> {
    this.#now += 1;
    if (step.do === 'read') this.#read(step.subject, this.processes[step.process % this.processes.length]);
    if (step.do === 'answer') this.#pending.splice(step.call, 1)[0]?.answer(step.how);
    if (step.do === 'pass') await this.timers.advance(step.ms);
    if (step.do === 'purge') {
      if (step.mode === 'hard') this.#hardPurges.push({ tag: step.tag, madeAt: this.#now });
      await this.processes[0]?.purges.purge([step.tag], step.mode);
    }
    await settle();
  }

  /** Answers everything that is still open. */
  async finish(): Promise<void> {
    for (let round = 0; round < 20 && this.#unanswered > 0; round++) {
      this.#now += 1;
      for (const call of this.#pending.splice(0)) call.answer('found');
      await this.timers.advance(300);
    }
  }

  /** Readers that were not answered yet. */
  get unanswered(): number {
    return this.#unanswered;
  }

  #read(of: Subject, rig: Rig | undefined): void {
    if (rig === undefined) return;
    const cameAt = this.#now;
    this.#unanswered += 1;
    const read = promised(() => (of === 'list' ? rig.reader.list(QUERY, CONTEXT) : rig.reader.evaluation(of, CONTEXT)));
    void read.then(
      (answer) => this.#check(of, cameAt, answer),
      (error: unknown) => {
        this.#unanswered -= 1;
        if (!(error instanceof StoreError)) this.faults.push(error);
      },
    );
  }

  readonly faults: unknown[] = [];

  #check(
    of: Subject,
    cameAt: number,
    read: CacheRead<EvaluationRecord | { readonly items: readonly EvaluationRecord[] }>,
  ): void {
    this.#unanswered -= 1;
    const isFromCache = read.tier !== null;
    if (isFromCache && read.ageMs > MAX_AGE_MS) this.faults.push(`${of} was served at the age of ${read.ageMs} ms`);
    if (read.outcome === 'hit' && read.ttlMs <= 0) this.faults.push(`${of} was a hit with ${read.ttlMs} ms left`);
    if (read.entry.answer.kind === 'absent') return;
    const record = recordOf(read);
    const title = 'items' in record ? record.items[0]?.title : record.title;
    const madeAt = this.#calls[Number(title)]?.madeAt ?? -1;
    for (const purge of this.#hardPurges) {
      const isCovered = tagsOf(of).includes(purge.tag);
      if (isCovered && purge.madeAt < cameAt && madeAt <= purge.madeAt) {
        this.faults.push(
          `${of} of call ${title} (${madeAt}) was served to a reader of ${cameAt} after the purge ${purge.madeAt}`,
        );
      }
    }
  }

  #ask<T>(of: Subject, make: (title: string) => T): Promise<StoreAnswer<T>> {
    if (this.#pending.some((call) => call.subject === of)) this.faults.push(`two calls at once for ${of}`);
    const { promise, resolve, reject } = Promise.withResolvers<StoreAnswer<T>>();
    const title = String(this.#calls.length);
    const call: Call = {
      subject: of,
      madeAt: this.#now,
      answer: (how) => {
        if (how === 'failed') reject(new StoreError('unreachable', 'down'));
        else if (how === 'absent' && of !== 'list') resolve({ kind: 'absent', code: 'NOT_FOUND' });
        else resolve({ kind: 'found', record: make(title), etag: null, bytes: 100 });
      },
    };
    this.#calls.push(call);
    this.#pending.push(call);
    return promise;
  }
}

/** The title names the call that the record came with. */
function recordWith(id: string, title: string): EvaluationRecord {
  return anEvaluation({ _id: id, title });
}

test.each([
  ['one process', false, 300],
  ['two processes of a fleet', true, 60],
] as const)(
  '%s: whatever the order of reads, answers, failures, purges and time, nothing purged is served, nothing too old, no question is asked twice at once, and every reader is answered',
  async (_, isFleet, numRuns) => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 40 }), async (history) => {
        const world = new World(isFleet);
        for (const step of history) await world.play(step);
        await world.finish();
        expect(world.faults).toEqual([]);
        expect(world.unanswered).toBe(0);
      }),
      { numRuns },
    );
  },
);

test('whenever readers of a cold question come while its call is under way, all get the same answer or the same failure', async () => {
  const arrival = fc.record({ process: fc.nat({ max: 2 }), ms: fc.constantFrom(0, 1, 240, 700, 2500) });
  await fc.assert(
    fc.asyncProperty(fc.array(arrival, { minLength: 1, maxLength: 12 }), fc.boolean(), async (arrivals, isFailing) => {
      const timers = new ManualTimers();
      const fleet = new MemoryFleet(timers);
      const options = { fleet, timers, flightDeadlineMs: 1e9 };
      const first = createRig(options);
      const processes = [first, createRig({ ...options, beside: first }), createRig({ ...options, beside: first })];
      first.store.hold();
      const reads: Promise<string>[] = [];
      for (const { process, ms } of arrivals) {
        const reader = processes[process]?.reader;
        if (reader === undefined) throw new Error('no process');
        reads.push(
          promised(() => reader.transcript('ev_1', CONTEXT)).then(
            (answer) => recordOf(answer).body,
            (error: unknown) => (error instanceof StoreError ? error.message : 'another error'),
          ),
        );
        await timers.advance(ms);
      }
      expect(first.store.count()).toBe(1);
      if (isFailing) first.store.held.splice(0).forEach(({ fail }) => fail(new StoreError('unreachable', 'down')));
      else first.store.release();
      await timers.advance(0);
      expect(new Set(await Promise.all(reads))).toEqual(new Set([isFailing ? 'down' : 'Sam: 1']));
      expect(first.store.count()).toBe(1);
    }),
    { numRuns: 100 },
  );
});
