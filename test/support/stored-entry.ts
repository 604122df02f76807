import { Entry } from '../../src/cache/entry.ts';
import type { StoredEntry } from '../../src/cache/stored.ts';
import { anEvaluation } from './records.ts';

/** The key of `aStoredEvaluation` with that id. */
export const keyOfEvaluation = (id: string): string => `v1:{evaluation:${id}}`;

/** An evaluation as a tier keeps it, fetched in 50 ms. */
export function aStoredEvaluation(filledAtMs: number, overrides: { id?: string; title?: string } = {}): StoredEntry {
  const id = overrides.id ?? 'ev_1';
  const record = anEvaluation({ _id: id, title: overrides.title ?? 'Discovery call' });
  return {
    kind: 'evaluation',
    entry: new Entry({ kind: 'found', record, etag: '"1"', bytes: 1000 }, filledAtMs),
    tags: ['all', 'class:evaluation', `evaluation:${id}`],
    position: { history: 'h', sequence: 3 },
    fetchedAtMs: filledAtMs + 50,
  };
}

/** What is known to be absent, as a tier keeps it. */
export function aStoredAbsence(filledAtMs: number, id = 'ev_1'): StoredEntry {
  return {
    kind: 'evaluation',
    entry: new Entry({ kind: 'absent', code: 'NOT_READY' }, filledAtMs),
    tags: ['all', 'class:evaluation', 'class:notFound', `evaluation:${id}`],
    position: { history: 'h', sequence: 3 },
    fetchedAtMs: filledAtMs + 50,
  };
}
