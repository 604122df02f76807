/**
 * The real cache, with a clock of its own, in front of a store whose records change: for predictions of what-if to be held
 * against what other times bring. Every answer is compared with what the store holds at that moment.
 */
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import { changesAlone, purgesAlone } from './purges.ts';
import { ReadThrough } from '../../src/cache/read-through.ts';
import { cacheRequest, recordRequest } from '../../src/cache/request.ts';
import { UNSHARED } from '../../src/cache/shared-cache.ts';
import { type CacheClass, type CacheTtl, overridesFor, TtlPolicy } from '../../src/cache/ttl-policy.ts';
import { type AdviceOptions, adviceOf } from '../../src/operations/advice.ts';
import { WhatIf } from '../../src/cache/what-if/what-if.ts';
import { MemoryJournal } from '../../src/journal/memory-journal.ts';
import { loadConfig } from '../../src/config/load.ts';
import { evaluationSchema, transcriptSchema } from '../../src/domain/records.ts';
import { systemTimers } from '../../src/time/timers.ts';
import { RESOURCES } from '../../src/upstream/resources.ts';
import type { Fetch } from '../../src/upstream/store.ts';
import { ManualClock } from './manual-clock.ts';
import { SeededRandom } from './random.ts';
import { zipfTrace } from './read-traces.ts';
import { anEvaluation, aTranscript, WORKSPACE_A, WORKSPACE_B } from './records.ts';

const MINUTE_MS = 60_000;
const PAGE = 20;
const RECORDS = 400;

/** How often a record changes, and whether at equal distances or at random. */
export type Rhythm = 'steady' | 'random';

/** When each record changes: a fifth of them every minute, the others every half hour. */
class Changes {
  readonly #random: SeededRandom;
  readonly #rhythm: Rhythm;
  readonly #changes = new Map<number, { version: number; untilMs: number }>();

  constructor(rhythm: Rhythm, seed: number) {
    this.#rhythm = rhythm;
    this.#random = new SeededRandom(seed);
  }

  /** Times must not go back. */
  versionAt(record: number, atMs: number): number {
    const everyMs = record % 5 === 0 ? MINUTE_MS : 30 * MINUTE_MS;
    const known = this.#changes.get(record) ?? { version: 0, untilMs: atMs + everyMs * this.#random.next() };
    while (atMs >= known.untilMs) {
      known.version += 1;
      known.untilMs += everyMs * (this.#rhythm === 'steady' ? 1 : -Math.log(1 - this.#random.next()));
    }
    this.#changes.set(record, known);
    return known.version;
  }
}

export interface ReadOfStore {
  readonly class: 'list' | 'evaluation' | 'transcript' | 'notFound';
  /** The number of the record, or of the page of a list. */
  readonly number: number;
  /** The set of workspaces that reads. */
  readonly readerSet: number;
  readonly atMs: number;
}

/** Lists, records that are mostly read from lists, transcripts, and records that the reader may not see. */
export function readsOfStore({ seed, hours, perSecond }: { seed: number; hours: number; perSecond: number }) {
  const reads = Math.round(hours * 3600 * perSecond);
  const random = new SeededRandom(seed + 1000);
  const shape = { seed, reads, hours, keys: RECORDS, exponent: 0.9 };
  const { keys, atMs } = zipfTrace(shape);
  return Array.from(keys, (key, index): ReadOfStore => {
    const kind = random.next();
    const about = { readerSet: random.integer(0, 2), atMs: atMs[index] ?? 0 };
    if (kind < 0.2) return { ...about, class: 'list', number: Math.floor(key / PAGE) };
    if (kind < 0.6) return { ...about, class: 'evaluation', number: key };
    if (kind < 0.9) return { ...about, class: 'transcript', number: key };
    return { ...about, class: 'notFound', number: key % 40 };
  });
}

export interface Seen {
  reads: number;
  hits: number;
  calls: number;
  /** The sum of the shares of each answer that were out of date. */
  outdated: number;
}

export type TimesOf = Partial<Record<CacheClass, Partial<CacheTtl>>>;

export class ChangingStore {
  readonly clock = new ManualClock();
  readonly ttl: TtlPolicy;
  readonly whatIf: WhatIf;
  readonly #changes: Changes;
  readonly #startMs = this.clock.nowMs();
  readonly #cache: ReadThrough;
  #seen = new Map<CacheClass, Seen>();
  #readClass: CacheClass = 'list';

  constructor(times: TimesOf, { rhythm = 'steady' }: { readonly rhythm?: Rhythm } = {}) {
    const { clock } = this;
    this.#changes = new Changes(rhythm, 1);
    this.ttl = new TtlPolicy(clock, loadConfig({ env: {} }).config.cache.classes);
    this.whatIf = new WhatIf({ clock, ttl: this.ttl });
    this.set(times);
    const { hooks } = this.whatIf;
    const memory = new MemoryTier({ maxBytes: 1e9, clock });
    const journal = new MemoryJournal();
    const purges = purgesAlone(clock, undefined, journal);
    this.#cache = new ReadThrough({
      store: {
        fetch: this.#fetch,
        hasRoom: () => true,
        maintenance: { current: () => null },
        maxWaitMs: 60_000,
      },
      memory,
      sharedCache: UNSHARED,
      endEverywhere: async () => {},
      ttl: this.ttl,
      purges,
      changes: changesAlone({ journal, clock, purges, memory }),
      clock,
      timers: systemTimers,
      events: {
        ...hooks,
        onStoreCall: (call) => {
          this.#seenOf(this.#readClass).calls += 1;
          hooks.onStoreCall?.(call);
        },
      },
    });
  }

  set(times: TimesOf): void {
    for (const cacheClass of ['list', 'evaluation', 'transcript', 'notFound'] as const) {
      const ttl = times[cacheClass];
      if (ttl !== undefined) this.ttl.override(cacheClass, overridesFor(ttl, null));
    }
  }

  /** Begins anew to count what is seen of each class. */
  forget(): void {
    this.#seen = new Map();
  }

  async read(reads: readonly ReadOfStore[], fromMs = 0): Promise<ReadonlyMap<CacheClass, Seen>> {
    for (const read of reads) {
      this.clock.advance(this.#startMs + fromMs + read.atMs - this.clock.nowMs());
      await this.#readOne(read);
    }
    return this.#seen;
  }

  advice(options: Partial<AdviceOptions> = {}) {
    const basis = { ttl: this.ttl, outdatedLimitOf: () => 0.02, nowMs: this.clock.nowMs() };
    return adviceOf([this.whatIf.report()], { ...basis, ...options });
  }

  async #readOne({ class: cacheClass, number, readerSet }: ReadOfStore): Promise<void> {
    this.#readClass = cacheClass;
    const isForeign = cacheClass === 'notFound';
    const extra = `33333333-3333-4333-8333-33333333333${readerSet}`;
    const workspaceIds = [isForeign ? WORKSPACE_B : WORKSPACE_A, extra];
    const reader = { requestId: 'r', workspaceIds };
    const seen = this.#seenOf(cacheClass);
    const nowMs = this.clock.nowMs();
    if (cacheClass === 'list') {
      const query = {
        workspaceIds: [WORKSPACE_A],
        search: null,
        scorecardId: null,
        offset: number * PAGE,
        limit: PAGE,
      };
      const { entry, outcome } = await this.#cache.read(cacheRequest(RESOURCES.list, query), reader);
      const items = entry.answer.kind === 'found' ? entry.answer.record.items : [];
      const old = items.filter(({ _id: id, title }) => title !== this.#textOf(Number(id.slice(3)), nowMs)).length;
      this.#count(seen, outcome, old / Math.max(1, items.length));
    } else {
      const kind = cacheClass === 'transcript' ? 'transcript' : 'evaluation';
      const { entry, outcome } = await this.#cache.read(recordRequest(kind, `ev_${number}`), reader);
      const record = entry.answer.kind === 'found' ? entry.answer.record : null;
      const text =
        kind === 'transcript'
          ? transcriptSchema.safeParse(record).data?.body
          : evaluationSchema.safeParse(record).data?.title;
      this.#count(seen, outcome, isForeign || text === this.#textOf(number, nowMs) ? 0 : 1);
    }
    // A refresh behind a stale copy ends before time goes on.
    for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
  }

  #count(seen: Seen, outcome: string, outdated: number): void {
    seen.reads += 1;
    if (outcome === 'hit' || outcome === 'stale-while-revalidate') seen.hits += 1;
    seen.outdated += outdated;
  }

  #seenOf(cacheClass: CacheClass): Seen {
    const known = this.#seen.get(cacheClass) ?? { reads: 0, hits: 0, calls: 0, outdated: 0 };
    this.#seen.set(cacheClass, known);
    return known;
  }

  #textOf(record: number, atMs: number): string {
    return `version ${this.#changes.versionAt(record, atMs)}`;
  }

  readonly #fetch: Fetch = async (resource, params) => {
    const path = resource.path(params);
    const nowMs = this.clock.nowMs();
    const evaluation = (record: number) => anEvaluation({ _id: `ev_${record}`, title: this.#textOf(record, nowMs) });
    const { pathname, searchParams } = new URL(path, 'http://store');
    const [id = '', part] = pathname.split('/').slice(4);
    const number = Number(id.slice(3));
    const offset = Number(searchParams.get('offset'));
    const raw =
      id === ''
        ? { items: Array.from({ length: PAGE }, (_, index) => evaluation(offset + index)), total: RECORDS }
        : part === undefined
          ? evaluation(number)
          : aTranscript({ evaluationId: id, body: this.#textOf(number, nowMs) });
    const record = await resource.parse(raw, params, () => {});
    return { kind: 'found', record, etag: null, bytes: 1000 };
  };
}
