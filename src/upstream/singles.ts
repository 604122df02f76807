/** The resources that are asked for by id. Each record is checked to be of the id that was asked. */
import {
  apiKeySchema,
  dealInsightsSchema,
  evaluationSchema,
  ID_PATTERN,
  scorecardSchema,
  scoredCardSchema,
  transcriptSchema,
  type ApiKeyRecord,
  type DealInsightsRecord,
  type EvaluationRecord,
  type ScorecardRecord,
  type ScoredCardRecord,
  type TranscriptRecord,
} from '../domain/records.ts';
import { withoutInternalMembers } from './open-objects.ts';
import { ROOT_PATH, type Question, type StoreResource } from './question.ts';
import { StoreError, type Absent } from './store.ts';
import { validatorOf, workspaceIdOf, type Validation } from './validate.ts';

/** Of any record: none is there, or not yet (Q9). */
const ABSENT_CODES: readonly Absent['code'][] = ['NOT_FOUND', 'NOT_READY'];
const KEY_HASH_PATTERN = /^[0-9a-f]{64}$/;

interface Single<T> {
  readonly resource: StoreResource;
  readonly pathOf: (id: string) => string;
  readonly validate: (value: unknown) => Validation<T>;
  /** The member that holds the id asked for, and its value. */
  readonly ownId: (record: T) => { readonly path: string; readonly id: string };
  /** What is done to a valid record before it is passed on. */
  readonly finish?: (record: T) => T;
}

/** Each throws a TypeError for an id that the caller should have refused; nothing is sent then. */
export const evaluationQuestion = questionOf<EvaluationRecord>({
  resource: 'evaluation',
  pathOf: (id) => `/evaluations/${id}`,
  validate: validatorOf(evaluationSchema),
  ownId: (record) => ({ path: '_id', id: record['_id'] }),
});

export const transcriptQuestion = questionOf<TranscriptRecord>({
  resource: 'transcript',
  pathOf: (id) => `/evaluations/${id}/transcript`,
  validate: validatorOf(transcriptSchema),
  ownId: (record) => ({ path: 'evaluationId', id: record.evaluationId }),
});

export const scoredCardQuestion = questionOf<ScoredCardRecord>({
  resource: 'scorecard',
  pathOf: (id) => `/evaluations/${id}/scorecard`,
  validate: validatorOf(scoredCardSchema),
  ownId: (record) => ({ path: 'evaluationId', id: record.evaluationId }),
});

export const dealInsightsQuestion = questionOf<DealInsightsRecord>({
  resource: 'dealInsights',
  pathOf: (id) => `/evaluations/${id}/deal-insights`,
  validate: validatorOf(dealInsightsSchema),
  ownId: (record) => ({ path: 'evaluationId', id: record.evaluationId }),
  finish: (record) => ({ ...record, insights: withoutInternalMembers(record.insights) }),
});

export const rubricQuestion = questionOf<ScorecardRecord>({
  resource: 'rubric',
  pathOf: (id) => `/scorecards/${id}`,
  validate: validatorOf(scorecardSchema),
  ownId: (record) => ({ path: '_id', id: record['_id'] }),
  finish: (record) => ({ ...record, rubric: withoutInternalMembers(record.rubric) }),
});

const validateApiKey = validatorOf(apiKeySchema);

/** The record names no hash, so that it is the one asked for can't be checked. Messages leave the hash out. */
export function apiKeyQuestion(hash: string): Question<ApiKeyRecord> {
  if (!KEY_HASH_PATTERN.test(hash)) throw new TypeError('an API key is asked for by its lower-case hex SHA-256');
  return {
    resource: 'apiKey',
    path: `${ROOT_PATH}/api-keys/${hash}`,
    absentCodes: ['NOT_FOUND'],
    read: (value) => {
      const validation = validateApiKey(value);
      if (!validation.ok) throw malformed(malformedAt('API key', validation.path));
      return validation.record;
    },
  };
}

function questionOf<T>(single: Single<T>): (id: string) => Question<T> {
  return (id) => {
    if (!ID_PATTERN.test(id)) throw new TypeError(`not an id of the store's ${single.resource} resource`);
    const name = `${single.resource} ${id}`;
    return {
      resource: single.resource,
      path: ROOT_PATH + single.pathOf(id),
      absentCodes: ABSENT_CODES,
      read: (value) => {
        const validation = single.validate(value);
        if (!validation.ok) throw malformed(malformedAt(name, validation.path), workspaceIdOf(value));
        const { record } = validation;
        const own = single.ownId(record);
        // Of the record asked for, this one tells nothing, its workspace included.
        if (own.id !== id) throw malformed(`the store answered for another id than ${name} (at ${own.path})`);
        return single.finish?.(record) ?? record;
      },
    };
  };
}

function malformedAt(name: string, path: string): string {
  return `the store's ${name} is malformed at ${path}`;
}

function malformed(privateMessage: string, workspaceId: string | null = null): StoreError {
  return new StoreError('malformed', privateMessage, { status: 200, workspaceId });
}
