/** Checks of single records of the store: some of each kind, and ids that are not there. The gateway's own client reads them. */
import { isDeepStrictEqual } from 'node:util';
import { ID_PATTERN } from '../../domain/vocabulary.ts';
import type { EvaluationRecord } from '../../domain/records.ts';
import { type CachedResource, type RecordParams, type Resource, RESOURCES } from '../../upstream/resources.ts';
import type { StoreAnswer } from '../../upstream/store.ts';
import { malformed, StoreError } from '../../upstream/store-error.ts';
import { memberOf } from '../../upstream/validation.ts';
import { countText } from '../format.ts';
import { type Checks, checksNamed, type Finding } from './check.ts';
import { memberFault } from './member-fault.ts';

/** Reads as the gateway does. Rejects with a StoreError. */
export type ReadStore = <P, R>(resource: Resource<P, R>, params: P, etag?: string) => Promise<StoreAnswer<R>>;

const NO_ID = 'evalgate-doctor-no-such-id';
/** So many records of each kind are looked at. */
const MAX_CHECKED = 5;
/** In so many evaluations each part is looked for. */
const MAX_TRIES = 20;
const COSTLY = 'It works, but every refresh costs the store a whole answer.';
const CHANGING = 'Or a busy store has just changed: try again.';
const ABSENCE_WANTED =
  'The store answers an id that it does not have with 200. A 404 with the code NOT_FOUND is wanted; without it, each such read is a 500. Have the store corrected.';
const NOT_SERVED = 'It is not served. Have the store corrected: docs/store-interface.md has the form of each answer.';
const OTHER_WORKSPACE = 'workspaceId is not that of the evaluation in the list';
const FOREIGN = 'Readers of the evaluation get a 404 for it. Have the store corrected: both are of one workspace.';
const GONE = 'an evaluation is in a list, and not there by its id';
const SECONDS = 'It is served as a time of 1970. Have the store send Unix milliseconds.';

const contract = checksNamed('contract');

/** Whether the call got no whole answer: then further calls are pointless. */
export function isUnanswered({ kind }: StoreError): boolean {
  return kind === 'timeout' || kind === 'unreachable' || kind === 'aborted';
}

/** Whether a read with the ETag of an answer is a 304. */
export async function revalidation<R>(
  answer: StoreAnswer<R>,
  name: string,
  readAgain: (etag: string) => Promise<StoreAnswer<R>>,
): Promise<Finding> {
  if (answer.kind !== 'found' || answer.etag === null) return contract.warn('answers without an ETag', COSTLY, name);
  const again = await readAgain(answer.etag);
  if (again.kind === 'not-modified') return contract.ok('If-None-Match is answered with 304', name);
  return contract.warn('If-None-Match is not answered with 304', `${COSTLY} ${CHANGING}`, name);
}

/** Unix seconds from 1973 on, which as milliseconds are times before March 1973, when there were no calls. */
function isInSeconds(timeMs: number): boolean {
  return timeMs >= 1e8 && timeMs < 1e11;
}

/** Times that are no milliseconds. */
export function timeFindings(checks: Checks, { _id, createdAtMs, shareLink }: EvaluationRecord): readonly Finding[] {
  return Object.entries({ createdAtMs, 'shareLink.deactivatedAtMs': shareLink?.deactivatedAtMs ?? 0 })
    .filter(([, timeMs]) => isInSeconds(timeMs))
    .map(([member]) => checks.fail(`${member} is in seconds instead of milliseconds`, SECONDS, _id));
}

/** Some records of each kind, found by the evaluations of a workspace. One part per kind; it rejects if there is no whole answer. */
export function checkRecords(
  read: ReadStore,
  records: readonly EvaluationRecord[],
): readonly Promise<readonly Finding[]>[] {
  if (records.length === 0) return [];
  // Not only the newest, because older ones may have been made otherwise.
  const step = Math.ceil(records.length / MAX_TRIES);
  const evaluations = records
    .filter((_record, index) => index % step === 0)
    .map((record): Named => [record['_id'], record]);
  const rubrics = records.flatMap((record): readonly Named[] => {
    const { id } = record.scorecardRef;
    return id !== null && ID_PATTERN.test(id) ? [[id, record]] : [];
  });
  return [
    checkKind(read, RESOURCES.evaluation, evaluations.slice(0, MAX_CHECKED), { compare: compareWithListed }),
    checkKind(read, RESOURCES.transcript, evaluations, { variantOf: ({ format }) => format ?? 'no format' }),
    checkKind(read, RESOURCES.scorecard, evaluations),
    checkKind(read, RESOURCES.dealInsights, evaluations),
    checkKind(read, RESOURCES.rubric, [...new Map(rubrics)].slice(0, MAX_TRIES)),
  ];
}

/** The id of a record, and the listed evaluation that names it. */
type Named = readonly [id: string, evaluation: EvaluationRecord];

interface Aspects<R> {
  readonly compare?: (record: R, evaluation: EvaluationRecord) => readonly Finding[];
  /** Shows how different the records are that were looked at. */
  readonly variantOf?: (record: R) => string;
}

/** Looks at the first records that are there. */
async function checkKind<R>(
  read: ReadStore,
  resource: CachedResource<RecordParams, R>,
  named: readonly Named[],
  { compare = () => [], variantOf }: Aspects<R> = {},
): Promise<readonly Finding[]> {
  const checks = checksNamed('contract', `${resource.name}: `);
  const explained: typeof resource = {
    ...resource,
    parse: async (value, params, onListed) => {
      try {
        return await resource.parse(value, params, onListed);
      } catch (error) {
        const fault =
          error instanceof StoreError && error.kind === 'malformed' ? memberFault(resource.schema, value) : null;
        throw error instanceof StoreError && fault !== null ? malformed(`${error.message}: ${fault}`) : error;
      }
    },
  };
  const findings: Finding[] = [];
  const found: R[] = [];
  let again: Finding | null = null;
  for (const [id, evaluation] of named) {
    if (found.length + findings.length >= MAX_CHECKED) break;
    try {
      const answer = await read(explained, { id });
      if (answer.kind !== 'found') {
        if (resource.name === 'evaluation') findings.push(contract.fail(GONE, NOT_SERVED, id));
        continue;
      }
      const { record } = answer;
      const isForeign = resource.workspaceOf(record) !== evaluation.workspaceId;
      const title = resource.title({ id });
      const faults = isForeign ? [contract.fail(OTHER_WORKSPACE, FOREIGN, title)] : compare(record, evaluation);
      findings.push(...faults);
      if (faults.length > 0) continue;
      found.push(record);
      again ??= await revalidation(answer, resource.name, (etag) => read(resource, { id }, etag));
    } catch (error) {
      findings.push(failure(error, resource, { id }, resource.title({ id })));
    }
  }
  if (found.length === 0) return findings.length > 0 ? findings : [noneOf(checks, resource, named)];
  const variants = variantOf === undefined ? '' : ` (${[...new Set(found.map(variantOf))].join(', ')})`;
  return [
    checks.ok(`${countText(found.length, 'record')} looked at, whole${variants}`),
    ...findings,
    ...(again === null ? [] : [again]),
  ];
}

function noneOf(
  checks: Checks,
  { name, template }: Pick<Resource<never, never>, 'name' | 'template'>,
  named: readonly Named[],
): Finding {
  const [first] = named;
  if (first === undefined) return checks.skipped('no record names one');
  const message = `none of ${countText(named.length, 'id')} has one, such as ${first[0]}`;
  const advice = `The gateway answers 404 for each. Check that the store has them at ${template}.`;
  // Some calls have no deal.
  return name === 'dealInsights' ? checks.warn(message, advice) : checks.fail(message, advice);
}

function compareWithListed(record: EvaluationRecord, listed: EvaluationRecord): readonly Finding[] {
  const names = Object.keys({ ...listed, ...record });
  const member = names.find((name) => !isDeepStrictEqual(memberOf(record, name), memberOf(listed, name)));
  if (member === undefined) return [];
  const advice = `Readers see whichever was read last. ${CHANGING}`;
  const differs = contract.warn(
    `an evaluation by its id differs from the same one in a list, at ${member}`,
    advice,
    record['_id'],
  );
  return [differs, ...timeFindings(contract, record)];
}

/** An id that is not there must be a 404 with a code: any other answer counts as a failure of the store. */
export async function checkAbsences(read: ReadStore): Promise<readonly Finding[]> {
  const { evaluation, transcript, scorecard, dealInsights, rubric } = RESOURCES;
  return await Promise.all([
    absence(read, evaluation, { id: NO_ID }),
    absence(read, transcript, { id: NO_ID }),
    absence(read, scorecard, { id: NO_ID }),
    absence(read, dealInsights, { id: NO_ID }),
    absence(read, rubric, { id: NO_ID }),
  ]);
}

async function absence<P, R>(read: ReadStore, resource: Resource<P, R>, params: P): Promise<Finding> {
  try {
    const { kind } = await read(resource, params);
    if (kind === 'absent')
      return contract.ok('an id that is not there is answered with 404 and a known code', resource.name);
    return contract.fail('an id that is not there is answered with 200', ABSENCE_WANTED, resource.name);
  } catch (error) {
    const finding = failure(error, resource, params, `${resource.name} of an id that is not there`);
    return wasAnsweredWith200(error) ? { ...finding, advice: ABSENCE_WANTED } : finding;
  }
}

function wasAnsweredWith200(error: unknown): boolean {
  return error instanceof StoreError && (error.kind === 'malformed' || error.kind === 'garbled');
}

/** The finding for an answer that the gateway refuses. Throws the error if there was no whole answer. */
function failure<P, R>(error: unknown, resource: Resource<P, R>, params: P, seen: string): Finding {
  if (!(error instanceof StoreError) || isUnanswered(error)) throw error;
  // Without the name of the record, findings with the same cause are one.
  const cause = error.message.replace(` (${resource.name})`, '').replace(resource.title(params), 'record');
  return contract.fail(cause, adviceFor(error), seen);
}

/** Statuses of a store that is overloaded or broken for now. They prove nothing about its contract. */
export function isTrouble(status: number): boolean {
  return status >= 500 || status === 429 || status === 408;
}

export const TROUBLE = 'The store, or a proxy before it, is in trouble: see its log, and try again.';

/** For an answer that the gateway refuses. */
export function adviceFor({ kind, status }: StoreError): string {
  if (status === 404 || status === 410) {
    return 'Only a 404 or 410 with the code NOT_FOUND or NOT_READY counts as absence; any other is served as a failure of the store. Have the store, or a proxy before it, corrected.';
  }
  if (status !== null && isTrouble(status)) return TROUBLE;
  return kind === 'refused' ? 'It is served as a failure of the store. See the log of the store.' : NOT_SERVED;
}
