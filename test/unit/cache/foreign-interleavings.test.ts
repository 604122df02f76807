/** Whatever happens in whatever order: what must hold of records of workspaces that a reader doesn't ask for. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { purge } from '../../../src/cache/purge.ts';
import type { ReadContext } from '../../../src/cache/reader.ts';
import type { Tag } from '../../../src/cache/tags.ts';
import type { CacheTimes } from '../../../src/cache/times.ts';
import { StoreError } from '../../../src/upstream/store.ts';
import { createRig, recordOf, type Rig } from '../../support/cache-rig.ts';
import { storeFailure } from '../../support/counting-store.ts';
import { ManualTimers, settle } from '../../support/manual-timers.ts';
import { MemoryFleet } from '../../support/memory-fleet.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';
import { A, A_AND_C, B, C, malformedOfB, put, read, WORKSPACE_C } from './foreign.ts';

/** `FOREIGN` is of workspace B, and so is `BROKEN`, which can't be used; there is no `MADE_UP`. */
const FOREIGN = 'ev_foreign';
const BROKEN = 'ev_broken';
const MADE_UP = 'ev_made_up';

type Action =
  | { readonly do: 'probe'; readonly as: 'A' | 'C' | 'A and C' }
  | { readonly do: 'own read' }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'fail'; readonly isFailing: boolean }
  | { readonly do: 'purge'; readonly tags: readonly Tag[]; readonly mode: 'soft' | 'hard' }
  | { readonly do: 'change' };

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('probe' as const),
      as: fc.constantFrom('A' as const, 'C' as const, 'A and C' as const),
    }),
  },
  { weight: 4, arbitrary: fc.constant({ do: 'own read' as const }) },
  // Never between nine tenths of a second and a whole one: within that each absence expires at a time of its own.
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(440, 1100, 9500, 25_000, 90_000) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('fail' as const), isFailing: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('purge' as const),
      tags: fc.constantFrom<readonly Tag[]>(
        ['all'],
        ['class:evaluation'],
        ['class:notFound'],
        [`workspace:${WORKSPACE_B}`],
        [`workspace:${WORKSPACE_A}`],
        [`evaluation:${FOREIGN}`, `evaluation:${BROKEN}`, `evaluation:${MADE_UP}`],
      ),
      mode: fc.constantFrom('soft' as const, 'hard' as const),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'change' as const }) },
);

interface Seen {
  readonly answer: string;
  readonly outcome: string;
  readonly calls: number;
}

interface Probe {
  readonly madeUp: Seen;
  readonly foreign: Seen;
  readonly broken: Seen;
}

class Probing {
  readonly #rig: Rig;
  #revision = 0;
  #isFailing = false;
  readonly probes: Probe[] = [];
  /** What the owner was answered and should not have been. */
  readonly faults: unknown[] = [];
  served = 0;

  constructor(isFleet: boolean, notFound: CacheTimes) {
    const timers = new ManualTimers();
    this.#rig = createRig(isFleet ? { timers, fleet: new MemoryFleet(timers) } : { timers });
    this.#rig.times.set('notFound', notFound);
    const { store } = this.#rig;
    const evaluation = store.evaluation.bind(store);
    store.evaluation = async (id, options) => {
      const answer = await evaluation(id, options);
      if (id === BROKEN) throw malformedOfB();
      return answer;
    };
    this.#change();
  }

  async play(step: Action): Promise<void> {
    const { store, timers } = this.#rig;
    if (step.do === 'probe') await this.#probe({ A, C, 'A and C': A_AND_C }[step.as]);
    if (step.do === 'own read') await this.#ownRead();
    if (step.do === 'pass') await timers.advance(step.ms);
    if (step.do === 'change') this.#change();
    if (step.do === 'fail') {
      // A failure is shared for a second by all who ask.
      await timers.advance(1320);
      this.#isFailing = step.isFailing;
      store.failure = step.isFailing ? storeFailure() : null;
    }
    if (step.do === 'purge') {
      // A failure of a moment ago, which a malformed record is, outlasts purges.
      await timers.advance(1320);
      await purge({ tags: step.tags, mode: step.mode, isDryRun: false }, { ...this.#rig, shared: null });
    }
    await settle();
  }

  async #probe(context: ReadContext): Promise<void> {
    const madeUp = await this.#look(MADE_UP, context);
    this.probes.push({
      madeUp,
      foreign: await this.#look(FOREIGN, context),
      broken: await this.#look(BROKEN, context),
    });
  }

  async #look(id: string, context: ReadContext): Promise<Seen> {
    const before = this.#rig.store.count();
    const seen = await read(this.#rig, context, id).then(
      ({ entry, outcome }) => ({ answer: JSON.stringify(entry.answer), outcome }),
      (error: unknown) => ({ answer: String(error), outcome: 'failed' }),
    );
    await settle();
    return { ...seen, calls: this.#rig.store.count() - before };
  }

  /** Has the latest record, or an older one of its own, or the store's failure: never what a probe has left. */
  async #ownRead(): Promise<void> {
    const own = await read(this.#rig, B, FOREIGN).then(
      (answer) => recordOf(answer).workspaceId,
      (error: unknown) => error,
    );
    const isFailed = this.#isFailing && own instanceof StoreError && own.kind === 'unreachable';
    const isOwn = own === WORKSPACE_B;
    if (!isFailed && !isOwn) this.faults.push(own);
    if (isOwn) this.served += 1;
    await read(this.#rig, B, BROKEN).catch(() => undefined);
    await settle();
    // A failure is shared for a second by all who ask.
    await this.#rig.timers.advance(1320);
  }

  #change(): void {
    this.#revision += 1;
    put(this.#rig, WORKSPACE_B, `revision ${this.#revision}`, FOREIGN);
    put(this.#rig, WORKSPACE_B, `revision ${this.#revision}`, BROKEN);
  }
}

test.each([
  ['one process', false, 0, 0],
  ['a process of a fleet', true, 0, 0],
  // All times are such that nothing ever expires by its jitter alone.
  ['a process that serves absences when they are stale', false, 2000, 5500],
])(
  "K7: in %s, whatever is cached, stale, purged, changed or failing, others' records and made-up ids look the same and cost the same",
  async (_, isFleet, staleMs, errorMs) => {
    let served = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 40 }), async (history) => {
        const probing = new Probing(isFleet, { freshMs: 1000, staleMs, errorMs });
        for (const step of history) await probing.play(step);
        expect(probing.faults).toEqual([]);
        const none = probing.probes.map(({ madeUp }) => ({ madeUp, foreign: madeUp, broken: madeUp }));
        expect(probing.probes).toEqual(none);
        served += probing.served;
      }),
      { numRuns: 150 },
    );
    expect(served).toBeGreaterThan(100);
  },
);

test('C4: whatever workspaces the store answers with, no reader is served a record outside its own, and no copy is stored for others than its owner', async () => {
  const contexts = [A, B, C, A_AND_C];
  const step = fc.record({
    reader: fc.nat({ max: 3 }),
    process: fc.nat({ max: 1 }),
    workspaceId: fc.option(fc.constantFrom(WORKSPACE_A, WORKSPACE_B, WORKSPACE_C), { nil: null, freq: 8 }),
    ms: fc.constantFrom(0, 0, 1, 300, 1000, 9000, 25_000),
    isHeld: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 30 }), async (history) => {
      const timers = new ManualTimers();
      const fleet = new MemoryFleet(timers);
      const one = createRig({ fleet, timers, flightDeadlineMs: 1e9 });
      const processes = [one, createRig({ fleet, beside: one, flightDeadlineMs: 1e9 })];
      const reads: Promise<readonly string[]>[] = [];
      /** For which workspaces somebody has asked. */
      const asked = new Set<string>();
      const faults: string[] = [];
      for (const { reader, process, workspaceId, ms, isHeld } of history) {
        if (workspaceId === null) one.store.evaluations.clear();
        else put(one, workspaceId);
        if (isHeld) one.store.hold();
        else one.store.release();
        const context = contexts[reader] ?? A;
        for (const id of context.workspaceIds) asked.add(id);
        const answer = read(processes[process] ?? one, context);
        reads.push(
          answer.then(({ entry }) => {
            const shown = entry.answer.kind === 'found' ? [entry.answer.record.workspaceId] : [];
            return shown.filter((id) => !context.workspaceIds.includes(id)).map((id) => `${id} was served`);
          }),
        );
        await timers.advance(ms);
        for (const tier of [fleet.tier, ...processes.map(({ memory }) => memory)]) {
          const stored = tier.get('v1:{evaluation:ev_1}')?.tags.filter((tag) => tag.startsWith('workspace:')) ?? [];
          const unasked = stored.filter((tag) => !asked.has(tag.slice('workspace:'.length)));
          faults.push(...unasked.map((tag) => `${tag} was stored`));
        }
      }
      one.store.release();
      await timers.advance(3000);
      faults.push(...(await Promise.all(reads)).flat());
      expect(faults).toEqual([]);
    }),
    { numRuns: 200 },
  );
});
