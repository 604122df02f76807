/** The list's query: how it is read from the address, and which evaluations it finds. */
import { EVALUATION_STATES, ID_PATTERN, UUID_PATTERN } from '../domain/records.ts';
import type { EvaluationState } from '../domain/records.ts';
import { isJsonObject, type JsonObject } from './records.ts';

export interface SampleListQuery {
  /** Lower-case UUIDs, at least one. */
  readonly workspaceIds: readonly string[];
  readonly state: EvaluationState | null;
  /** Text to search for, in lower case; empty finds everything. */
  readonly q: string;
  readonly scorecardId: string | null;
  readonly offset: number;
  readonly limit: number;
}

/** A query that the interface doesn't allow; the message says why. */
export class BadQueryError extends Error {
  override readonly name = 'BadQueryError';
}

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 100;
const KNOWN = ['workspaceId', 'state', 'q', 'scorecardId', 'offset', 'limit'];

/**
 * Reads the query of the list. `offset` is 0 and `limit` is 50 where they are left out; parameters that the interface
 * doesn't know are refused, so that a caller's slip of the pen shows.
 * Throws a BadQueryError.
 */
export function parseListQuery(params: URLSearchParams): SampleListQuery {
  const unknown = [...params.keys()].find((name) => !KNOWN.includes(name));
  if (unknown !== undefined) throw new BadQueryError(`unknown parameter; known are ${KNOWN.join(', ')}`);
  const workspaceIds = params.getAll('workspaceId');
  if (workspaceIds.length === 0) throw new BadQueryError('workspaceId is required');
  if (!workspaceIds.every((id) => UUID_PATTERN.test(id))) throw new BadQueryError('workspaceId must be a UUID');
  const state = single(params, 'state');
  const knownState = EVALUATION_STATES.find((name) => name === state) ?? null;
  if (state !== null && knownState === null) {
    throw new BadQueryError(`state must be one of ${EVALUATION_STATES.join(', ')}`);
  }
  const scorecardId = single(params, 'scorecardId');
  if (scorecardId !== null && !ID_PATTERN.test(scorecardId)) throw new BadQueryError('scorecardId must be an id');
  return {
    workspaceIds: [...new Set(workspaceIds.map((id) => id.toLowerCase()))],
    state: knownState,
    q: (single(params, 'q') ?? '').toLowerCase(),
    scorecardId,
    offset: integer(params, 'offset', { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: 0 }),
    limit: integer(params, 'limit', { min: 1, max: MAX_LIMIT, otherwise: DEFAULT_LIMIT }),
  };
}

function single(params: URLSearchParams, name: string): string | null {
  const values = params.getAll(name);
  if (values.length > 1) throw new BadQueryError(`${name} must not be repeated`);
  return values[0] ?? null;
}

interface Range {
  readonly min: number;
  readonly max: number;
  readonly otherwise: number;
}

function integer(params: URLSearchParams, name: string, { min, max, otherwise }: Range): number {
  const text = single(params, name);
  if (text === null) return otherwise;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new BadQueryError(
    max === Number.MAX_SAFE_INTEGER
      ? `${name} must be an integer of at least ${min}`
      : `${name} must be an integer from ${min} to ${max}`,
  );
}

/** All evaluations that the query is about, whatever its page, in the interface's order. */
export function findEvaluations(records: Iterable<unknown>, query: SampleListQuery): readonly JsonObject[] {
  return [...records]
    .filter((record) => isJsonObject(record))
    .filter((record) => matches(record, query))
    .toSorted(compareNewestFirst);
}

/** Newest first; of two from the same millisecond the one with the greater id, by code units, comes first. */
export function compareNewestFirst(a: JsonObject, b: JsonObject): number {
  const byTime = timeOf(b) - timeOf(a);
  if (byTime !== 0 || a['_id'] === b['_id']) return byTime;
  return String(a['_id']) < String(b['_id']) ? 1 : -1;
}

/** 0 for a broken record, which comes last. */
function timeOf({ createdAtMs }: JsonObject): number {
  return typeof createdAtMs === 'number' ? createdAtMs : 0;
}

function matches(record: JsonObject, query: SampleListQuery): boolean {
  return (
    query.workspaceIds.includes(String(record['workspaceId']).toLowerCase()) &&
    (query.state === null || record['state'] === query.state) &&
    (query.scorecardId === null || objectIn(record, 'scorecardRef')['id'] === query.scorecardId) &&
    (query.q === '' || searchedTexts(record).some((text) => text.includes(query.q)))
  );
}

/** Exactly the texts that the interface searches, in lower case. */
function searchedTexts(record: JsonObject): readonly string[] {
  const evaluatee = objectIn(record, 'evaluatee');
  const deals = objectsIn(record, 'crmLinks').filter(({ objectType }) => objectType === 'deal');
  return [
    record['title'],
    evaluatee['displayName'],
    evaluatee['email'],
    ...objectsIn(record, 'people').map(({ email }) => email),
    ...deals.map(({ label }) => label),
  ].flatMap((text) => (typeof text === 'string' ? [text.toLowerCase()] : []));
}

function objectIn(record: JsonObject, name: string): JsonObject {
  const member = record[name];
  return isJsonObject(member) ? member : {};
}

function objectsIn(record: JsonObject, name: string): readonly JsonObject[] {
  const member: unknown = record[name];
  return Array.isArray(member) ? member.filter((item) => isJsonObject(item)) : [];
}
