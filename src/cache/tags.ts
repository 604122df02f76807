/** Tags: what copies are purged by (C6). Pure. */
import {
  type EvaluationPage,
  type EvaluationRecord,
  ID_PATTERN,
  type ScorecardRecord,
  UUID_PATTERN,
} from '../domain/records.ts';
import type { ListQuery } from '../upstream/store.ts';
import { CACHE_CLASSES, type CacheClass } from './ttl-policy.ts';

/** The tags of the admin interface, and `lists-of`: the lists over a workspace, which a purged evaluation takes along. */
export type Tag =
  | 'all'
  | `class:${CacheClass}`
  | `workspace:${string}`
  | `evaluation:${string}`
  | `scorecard:${string}`
  | `lists-of:${string}`;

/** A tag as an operator writes it; null for anything else. */
export function parseTag(text: string): Tag | null {
  if (text === 'all') return text;
  const colon = text.indexOf(':');
  const name = text.slice(0, colon);
  const value = text.slice(colon + 1);
  if (name === 'class') {
    const cacheClass = CACHE_CLASSES.find((candidate) => candidate === value);
    return cacheClass === undefined ? null : `class:${cacheClass}`;
  }
  if (name === 'workspace') return UUID_PATTERN.test(value) ? `workspace:${value.toLowerCase()}` : null;
  if (name === 'evaluation' || name === 'scorecard') return ID_PATTERN.test(value) ? `${name}:${value}` : null;
  return null;
}

/** A page is tagged with the scorecards of its items too: it shows their names. */
export function listTags(query: ListQuery, page: EvaluationPage | null): readonly Tag[] {
  const scorecards = new Set((page?.items ?? []).map((item) => item.scorecardRef.id));
  return [
    ...query.workspaceIds.flatMap((id): readonly Tag[] => [`workspace:${id}`, `lists-of:${id}`]),
    ...scorecardTags(scorecards.add(query.scorecardId)),
  ];
}

/** `record` is null if the store has none. */
export function evaluationTags(id: string, record: EvaluationRecord | null): readonly Tag[] {
  return [...partTags(id, record), ...scorecardTags([record?.scorecardRef.id ?? null])];
}

/** The tags of a transcript, a scored scorecard or deal insights. */
export function partTags(evaluationId: string, record: { readonly workspaceId: string } | null): readonly Tag[] {
  return [`evaluation:${evaluationId}`, ...workspaceTags(record)];
}

export function rubricTags(id: string, record: ScorecardRecord | null): readonly Tag[] {
  return [`scorecard:${id}`, ...workspaceTags(record)];
}

function workspaceTags(record: { readonly workspaceId: string } | null): readonly Tag[] {
  return record === null ? [] : [`workspace:${record.workspaceId}`];
}

function scorecardTags(ids: Iterable<string | null>): readonly Tag[] {
  return [...ids].flatMap((id): readonly Tag[] => (id === null ? [] : [`scorecard:${id}`]));
}
