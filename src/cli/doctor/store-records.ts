/** Checks of single records of the store: one of each kind, and ids that are not there. The gateway's own client reads them. */
import { isDeepStrictEqual } from 'node:util';
import type { EvaluationRecord } from '../../domain/records.ts';
import { apiKey, type CachedResource, type RecordParams, type Resource, RESOURCES } from '../../upstream/resources.ts';
import type { StoreAnswer } from '../../upstream/store.ts';
import { StoreError } from '../../upstream/store-error.ts';
import { type Check, type Checks, checksNamed } from './check.ts';

/** Reads as the gateway does. Rejects with a StoreError. */
export type ReadStore = <P, R>(resource: Resource<P, R>, params: P, etag?: string) => Promise<StoreAnswer<R>>;

const NO_ID = 'evalgate-doctor-no-such-id';
const NO_KEY = '0'.repeat(64);
/** In so many of the newest evaluations each part is looked for. */
const MAX_TRIES = 20;
const COSTLY = 'It works, but every refresh costs the store a whole answer.';
const NOT_SERVED = 'It is not served. Have the store corrected: docs/store-interface.md lists the members.';

const missing = checksNamed('contract', 'an id that is not there: ');

/** Whether the call got no whole answer: then further calls are pointless. */
export function isUnanswered({ kind }: StoreError): boolean {
  return kind === 'timeout' || kind === 'unreachable' || kind === 'aborted';
}

/** Whether a read with the ETag of an answer is a 304. */
export async function revalidation<R>(
  checks: Checks,
  answer: StoreAnswer<R>,
  readAgain: (etag: string) => Promise<StoreAnswer<R>>,
): Promise<Check> {
  if (answer.kind !== 'found' || answer.etag === null) return checks.warn('the answer has no ETag', COSTLY);
  const again = await readAgain(answer.etag);
  if (again.kind === 'not-modified') return checks.ok('If-None-Match is answered with 304');
  const advice = `${COSTLY} A busy store may just have changed: try again.`;
  return checks.warn('If-None-Match is not answered with 304', advice);
}

/** One record of each kind, found by the newest evaluations of a workspace. Rejects if there is no whole answer. */
export async function checkRecords(read: ReadStore, records: readonly EvaluationRecord[]): Promise<readonly Check[]> {
  const [newest] = records;
  if (newest === undefined) return [];
  const ids = records.slice(0, MAX_TRIES).map(({ _id }) => _id);
  const rubrics = records.flatMap(({ scorecardRef: { id } }) => id ?? []);
  return [
    ...(await checkEvaluation(read, newest)),
    ...(await checkOne(read, RESOURCES.transcript, ids, 'transcript')),
    ...(await checkOne(read, RESOURCES.scorecard, ids, 'scored scorecard')),
    ...(await checkOne(read, RESOURCES.dealInsights, ids, 'deal insights')),
    ...(await checkOne(read, RESOURCES.rubric, [...new Set(rubrics)].slice(0, MAX_TRIES), 'rubric')),
  ];
}

async function checkEvaluation(read: ReadStore, listed: EvaluationRecord): Promise<readonly Check[]> {
  const checks = checksNamed('contract', 'evaluation: ');
  return examined(checks, async () => {
    const id = listed['_id'];
    const answer = await read(RESOURCES.evaluation, { id });
    if (answer.kind !== 'found') return [checks.fail(`${id} is in a list, and not there by its id`, NOT_SERVED)];
    if (!isDeepStrictEqual(answer.record, listed)) {
      const advice = 'Readers see whichever was read last. A busy store may just have changed: try again.';
      return [checks.warn(`${id} differs from the same record in a list`, advice)];
    }
    return [
      checks.ok(`${id} is whole`),
      await revalidation(checks, answer, (etag) => read(RESOURCES.evaluation, { id }, etag)),
    ];
  });
}

/** The first of the ids that has the part. */
async function checkOne<R>(
  read: ReadStore,
  resource: CachedResource<RecordParams, R>,
  ids: readonly string[],
  name: string,
): Promise<readonly Check[]> {
  const checks = checksNamed('contract', `${name}: `);
  if (ids.length === 0) return [checks.skipped('no record names one')];
  return examined(checks, async () => {
    for (const id of ids) {
      const answer = await read(resource, { id });
      if (answer.kind !== 'found') continue;
      return [
        checks.ok(`that of ${id} is whole`),
        await revalidation(checks, answer, (etag) => read(resource, { id }, etag)),
      ];
    }
    const message = `none of ${ids.length} records has one, such as ${ids[0]}`;
    const advice = `The gateway answers 404 for each. Check that the store has them at ${resource.template}.`;
    // Some calls have no deal.
    return [resource === RESOURCES.dealInsights ? checks.warn(message, advice) : checks.fail(message, advice)];
  });
}

/** An id that is not there must be a 404 with a code: any other answer counts as a failure of the store. */
export async function checkAbsences(read: ReadStore, hasKeys: boolean): Promise<readonly Check[]> {
  const { evaluation, transcript, scorecard, dealInsights, rubric } = RESOURCES;
  const found = [
    ...(await absence(read, evaluation, { id: NO_ID })),
    ...(await absence(read, transcript, { id: NO_ID })),
    ...(await absence(read, scorecard, { id: NO_ID })),
    ...(await absence(read, dealInsights, { id: NO_ID })),
    ...(await absence(read, rubric, { id: NO_ID })),
    ...(hasKeys ? await absence(read, apiKey, { hash: NO_KEY }) : []),
  ];
  return found.length > 0 ? found : [missing.ok('answered with 404 and a known code, for each resource')];
}

async function absence<P, R>(read: ReadStore, resource: Resource<P, R>, params: P): Promise<readonly Check[]> {
  return examined(missing, async () => {
    const { kind } = await read(resource, params);
    return kind === 'absent' ? [] : [missing.fail(`${resource.name}: answered with 200`, NOT_SERVED)];
  });
}

/** A finding for an answer that the gateway would refuse. Rejects if there is no whole answer. */
async function examined(checks: Checks, find: () => Promise<readonly Check[]>): Promise<readonly Check[]> {
  try {
    return await find();
  } catch (error) {
    if (!(error instanceof StoreError) || isUnanswered(error)) throw error;
    return [checks.fail(error.message, adviceFor(error))];
  }
}

function adviceFor({ kind, status }: StoreError): string {
  if (status === 404) {
    return 'Only a 404 with the code NOT_FOUND or NOT_READY counts as absence; any other is served as a failure of the store. Have the store, or a proxy before it, corrected.';
  }
  return kind === 'malformed' ? NOT_SERVED : 'It is served as a failure of the store. See the log of the store.';
}
