/**
 * Checks of the store's lists: whole records, order, pages, totals, filters and the search, compared with the records
 * themselves. The gateway's own client reads them, so what passes here is what the gateway serves.
 */
import { z } from 'zod';
import { type EvaluationRecord, evaluationSchema, ID_PATTERN } from '../../domain/records.ts';
import { type LeftOut, type ListQuery, type Resource, RESOURCES } from '../../upstream/resources.ts';
import type { StoreAnswer } from '../../upstream/store.ts';
import { StoreError } from '../../upstream/store-error.ts';
import { type Check, checksNamed } from './check.ts';
import { isUnanswered, type ReadStore, revalidation } from './store-records.ts';

const contract = checksNamed('contract', 'lists: ');

/** No store has such a workspace, or a record with this text. */
export const NO_WORKSPACE = '00000000-0000-4000-8000-000000000000';
const NOTHING = 'evalgate-doctor-no-such-thing';
const MAX_LENGTH = 100;
const MAX_NAMED = 5;
/** How often a list is read again that changed while it was compared. */
const MAX_TRIES = 3;
const CORRECT = 'Have the store corrected: docs/store-interface.md says what a list holds, and in which order.';
const LEFT_OUT = 'Such records are not served. Have the store corrected: docs/store-interface.md lists the members.';

/** A list as it was sent, beside what the gateway makes of it. */
interface SentList {
  /** The `_id` of each item, in the order sent; null if it has none. */
  readonly ids: readonly (string | null)[];
  /** The whole records among the items, in the order sent. */
  readonly records: readonly EvaluationRecord[];
  readonly total: number;
  readonly leftOut: readonly LeftOut[];
}

const itemsSchema = z.object({ items: z.array(z.unknown()) });
const idSchema = z.object({ _id: z.string() });

const sentList: Resource<ListQuery, SentList> = {
  ...RESOURCES.list,
  parse: async (value, query) => {
    let leftOut: readonly LeftOut[] = [];
    const { total } = await RESOURCES.list.parse(value, query, (listed) => {
      leftOut = listed.leftOut;
    });
    const { items } = itemsSchema.parse(value);
    return {
      ids: items.map((item) => idSchema.safeParse(item).data?.['_id'] ?? null),
      records: items.flatMap((item) => evaluationSchema.safeParse(item).data ?? []),
      total,
      leftOut,
    };
  },
};

type ReadList = (query?: Partial<ListQuery>) => Promise<SentList>;

/**
 * `workspaceId`: in lower case; null to check the form only. Rejects with a StoreError if the store gives no list, or no
 * whole answer. `records` are the newest of the workspace.
 */
export async function checkLists(
  read: ReadStore,
  workspaceId: string | null,
): Promise<{ readonly checks: readonly Check[]; readonly records: readonly EvaluationRecord[] }> {
  const query = (changes: Partial<ListQuery> = {}): ListQuery => ({
    workspaceIds: [workspaceId ?? NO_WORKSPACE],
    search: null,
    scorecardId: null,
    offset: 0,
    limit: MAX_LENGTH,
    ...changes,
  });
  const readList: ReadList = async (changes) => listOf(await read(sentList, query(changes)));
  const answer = await read(sentList, query());
  const checks = [await revalidation(contract, answer, (etag) => read(sentList, query(), etag))];
  const first = listOf(answer);
  if (workspaceId === null) {
    const found =
      first.ids.length === 0 ? 'valid form' : `a workspace that no store has holds ${first.ids.length} records`;
    if (first.ids.length > 0) return { checks: [contract.fail(found, CORRECT), ...checks], records: [] };
    return {
      checks: [contract.ok(`${found}; --workspace UUID checks the rest, and the records`), ...checks],
      records: [],
    };
  }
  if (first.ids.length === 0) {
    const advice = 'Name a workspace with completed evaluations, to check them and their parts.';
    return { checks: [contract.warn('the workspace has no completed evaluations', advice), ...checks], records: [] };
  }
  const { list, faults } = await compare(readList, first, workspaceId);
  return {
    checks: [...recordChecks(list), ...listChecks(faults), ...checks],
    records: list.records,
  };
}

function listChecks(faults: readonly string[]): readonly Check[] {
  if (faults.length > 0) return faults.map((fault) => contract.fail(fault, CORRECT));
  return [contract.ok('order, pages, totals, filters and the search are as described')];
}

/** A list is never absent, and not-modified only answers a read with an ETag. */
function listOf(answer: StoreAnswer<SentList>): SentList {
  if (answer.kind === 'found') return answer.record;
  throw new StoreError('errorStatus', `the store answered a list with ${answer.kind}`);
}

/** The faults of a list that stood still while it was compared, or of the last try. */
async function compare(
  readList: ReadList,
  first: SentList,
  workspaceId: string,
): Promise<{ readonly list: SentList; readonly faults: readonly string[] }> {
  for (let list = first, tries = 1; ; tries += 1) {
    const faults = [
      ...orderFaults(list),
      ...(await faultsOf(() => pageFaults(readList, list))),
      ...(await faultsOf(() => scorecardFaults(readList, list))),
      ...(await faultsOf(() => searchFaults(readList, list))),
      ...(await faultsOf(() => workspaceFaults(readList, list, workspaceId))),
    ];
    if (faults.length === 0 || tries === MAX_TRIES) return { list, faults };
    const again = await readList();
    if (again.total === list.total && again.ids.join() === list.ids.join()) return { list, faults };
    list = again;
  }
}

/** An answer that the gateway would refuse is a fault. Rejects if there is no whole answer. */
async function faultsOf(find: () => Promise<readonly string[]>): Promise<readonly string[]> {
  try {
    return await find();
  } catch (error) {
    if (error instanceof StoreError && !isUnanswered(error)) return [error.message];
    throw error;
  }
}

/** Names the records that the gateway leaves out, and the member of each. */
function recordChecks({ ids, leftOut }: SentList): readonly Check[] {
  const unserved = leftOut.filter(({ surface }) => surface === undefined);
  const named = unserved.slice(0, MAX_NAMED).map((one) => contract.fail(leftOutText(one), LEFT_OUT));
  const others = unserved.length - named.length;
  if (others > 0) named.push(contract.fail(`${others} more records are left out`, LEFT_OUT));
  const unreported = leftOut.filter(({ surface }) => surface !== undefined);
  const [example] = unreported;
  if (example !== undefined) {
    const message = `v1 leaves out ${unreported.length} of ${ids.length} records: ${leftOutText(example)}`;
    named.push(contract.warn(message, 'v1 promises an e-mail address of the usual form. v2 serves these records.'));
  }
  return named.length > 0 ? named : [contract.ok(`${ids.length} records are whole`)];
}

function leftOutText({ id, path }: LeftOut): string {
  if (id === null) return `a record has no valid _id`;
  if (path === '_id') return `${id} is listed twice`;
  if (path === 'state') return `state=COMPLETED is ignored: ${id} has another state`;
  return `${id}: ${path} is missing or malformed`;
}

function orderFaults({ records }: SentList): readonly string[] {
  const place = records.findIndex((record, index) => {
    const before = records[index - 1];
    if (before === undefined || before.createdAtMs > record.createdAtMs) return false;
    return before.createdAtMs < record.createdAtMs || before['_id'] < record['_id'];
  });
  if (place === -1) return [];
  const [before, after] = [records[place - 1]?.['_id'], records[place]?.['_id']];
  return [`the order is not createdAtMs, then _id, both descending: ${before} comes before ${after}`];
}

async function pageFaults(readList: ReadList, { ids, total }: SentList): Promise<readonly string[]> {
  if (ids.length > MAX_LENGTH) return [`limit=${MAX_LENGTH} is ignored: ${ids.length} records came`];
  if (ids.length < MAX_LENGTH && ids.length !== total)
    return [`total is ${total}, and there are ${ids.length} records`];
  const faults: string[] = [];
  const expected = ids.slice(1, 3);
  const page = await readList({ offset: 1, limit: 2 });
  if (page.ids.length > 2) faults.push(`limit=2 is ignored: ${page.ids.length} records came`);
  if (expected.length > 0 && page.ids[0] === ids[0]) faults.push(`offset=1 is ignored: ${ids[0]} comes again`);
  else if (page.ids.slice(0, 2).join() !== expected.join()) {
    faults.push(`offset=1 with limit=2 holds ${shown(page.ids)}, and the whole list ${shown(expected)} there`);
  }
  if (page.total !== total) faults.push(`total depends on the page: ${total} without offset, ${page.total} with it`);
  if (faults.length > 0) return faults;
  const last = await readList({ offset: total - 1, limit: 2 });
  if (last.ids.length !== 1) return [`total is ${total}, and after ${total - 1} records there are ${last.ids.length}`];
  const past = await readList({ offset: total, limit: 2 });
  if (past.ids.length > 0) return [`past the end, offset=${total} holds ${shown(past.ids)}`];
  return past.total === total ? [] : [`past the end, total is ${past.total} instead of ${total}`];
}

async function scorecardFaults(readList: ReadList, list: SentList): Promise<readonly string[]> {
  const none = await readList({ scorecardId: NOTHING });
  if (none.ids.length > 0) return [`scorecardId is ignored: one that no record has finds ${none.ids.length} records`];
  const record = list.records.find(({ scorecardRef: { id } }) => id !== null && ID_PATTERN.test(id));
  const id = record?.scorecardRef.id ?? null;
  if (record === undefined || id === null) return [];
  const found = await readList({ scorecardId: id });
  const other = found.records.find(({ scorecardRef }) => scorecardRef.id !== id);
  if (other !== undefined) return [`scorecardId=${id} finds ${other['_id']}, which has another scorecard`];
  if (!found.ids.includes(record['_id'])) return [`scorecardId=${id} does not find ${record['_id']}, which has it`];
  return filteredTotal(found, `scorecardId=${id}`);
}

/** A total that counts what the filter left out. */
function filteredTotal({ ids, total }: SentList, filter: string): readonly string[] {
  return ids.length < MAX_LENGTH && total !== ids.length
    ? [`${filter}: total is ${total}, and ${ids.length} records match`]
    : [];
}

/** The texts that a search looks at, by the words for them. */
const SEARCHED: readonly (readonly [string, (record: EvaluationRecord) => readonly (string | null)[]])[] = [
  ['title', ({ title }) => [title]],
  ["evaluatee's name", ({ evaluatee }) => [evaluatee.displayName]],
  ["evaluatee's e-mail address", ({ evaluatee }) => [evaluatee.email]],
  ["people's e-mail addresses", ({ people }) => people.map(({ email }) => email)],
  [
    'labels of deals',
    ({ crmLinks }) => crmLinks.filter(({ objectType }) => objectType === 'deal').map(({ label }) => label),
  ],
];

async function searchFaults(readList: ReadList, list: SentList): Promise<readonly string[]> {
  const none = await readList({ search: NOTHING });
  if (none.ids.length > 0) return [`q is ignored: a text that no record holds finds ${none.ids.length} records`];
  const faults: string[] = [];
  for (const [member, textsOf] of SEARCHED) {
    // The newest with a text, so that it is on the first page of what is found.
    const record = list.records.find((one) => partOf(textsOf(one)) !== null);
    const search = record === undefined ? null : partOf(textsOf(record));
    if (record === undefined || search === null) continue;
    const found = await readList({ search });
    const other = found.records.find((one) => !holds(one, search));
    if (!found.ids.includes(record['_id'])) {
      faults.push(`q does not find ${record['_id']} by a part of its ${member} in another case`);
    } else if (other !== undefined) faults.push(`q finds ${other['_id']}, which does not hold the text`);
    else faults.push(...filteredTotal(found, 'q'));
  }
  return faults;
}

/** The inner part of the first text that is long enough, with the case of its ASCII letters swapped. */
function partOf(texts: readonly (string | null)[]): string | null {
  const text = texts.find((one) => one !== null && one.trim().length > 3);
  const part = Array.from(text?.trim() ?? '')
    .slice(1, -1)
    .join('')
    .trim();
  if (part === '') return null;
  return part.replaceAll(/[a-z]|[A-Z]/g, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );
}

function holds(record: EvaluationRecord, text: string): boolean {
  const wanted = text.toLowerCase();
  return SEARCHED.some(([, textsOf]) => textsOf(record).some((one) => one?.toLowerCase().includes(wanted) === true));
}

async function workspaceFaults(readList: ReadList, list: SentList, workspaceId: string): Promise<readonly string[]> {
  const none = await readList({ workspaceIds: [NO_WORKSPACE] });
  if (none.total > 0) return [`a workspace that no store has holds ${none.total} records`];
  const faults: string[] = [];
  for (const workspaceIds of [
    [workspaceId, NO_WORKSPACE],
    [NO_WORKSPACE, workspaceId],
  ]) {
    const both = await readList({ workspaceIds });
    if (both.ids.join() === list.ids.join() && both.total === list.total) continue;
    const which = workspaceIds[0] === workspaceId ? 'first' : 'second';
    faults.push(`workspaceId given twice: the records of the ${which} one are missing`);
  }
  return faults;
}

function shown(ids: readonly (string | null)[]): string {
  return ids.length === 0 ? 'nothing' : ids.slice(0, MAX_NAMED).join(', ');
}
