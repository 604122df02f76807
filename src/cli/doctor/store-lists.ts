/**
 * Checks of the store's lists: whole records, order, pages, totals, filters and the search, compared with the records
 * themselves. The gateway's own client reads them, so what passes here is what the gateway serves.
 */
import { z } from 'zod';
import { type EvaluationRecord, evaluationSchema } from '../../domain/records.ts';
import { ID_PATTERN } from '../../domain/vocabulary.ts';
import { type LeftOut, type ListQuery, type Resource, RESOURCES } from '../../upstream/resources.ts';
import type { StoreAnswer } from '../../upstream/store.ts';
import { StoreError } from '../../upstream/store-error.ts';
import { countText } from '../format.ts';
import { checksNamed, type Finding } from './check.ts';
import { memberFault } from './member-fault.ts';
import { adviceFor, isUnanswered, type ReadStore, revalidation, timeFindings } from './store-records.ts';

const contract = checksNamed('contract', 'lists: ');

/** No store has such a workspace, or a record with this text. */
export const NO_WORKSPACE = '00000000-0000-4000-8000-000000000000';
const NOTHING = 'evalgate-doctor-no-such-thing';
const MAX_LENGTH = 100;
const MAX_NAMED = 5;
/** Where the page begins that is compared with the whole list. Not at 1, since pages may overlap by one record. */
const OFFSET = 2;
/** How often a list is read again that changed while it was compared. */
const MAX_TRIES = 3;
const CORRECT = 'Have the store corrected: docs/store-interface.md says what a list holds, and in which order.';
const LEFT_OUT = 'Such records are not served. Have the store corrected: docs/store-interface.md lists the members.';
const NAME_ONE =
  'Name a workspace with completed evaluations (--workspace UUID), to check its lists, records and parts.';

function fault(cause: string, seen?: string): Finding {
  return contract.fail(cause, CORRECT, seen);
}

/** A list as it was sent, beside what the gateway makes of it. */
interface SentList {
  /** The `_id` of each item, in the order sent; null if it has none. */
  readonly ids: readonly (string | null)[];
  /** The whole records among the items, in the order sent. */
  readonly records: readonly EvaluationRecord[];
  readonly total: number;
  readonly leftOut: readonly (LeftOut & { readonly fault: string | null })[];
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
      leftOut: leftOut.map((one) => {
        const item = items.find((sent) => idSchema.safeParse(sent).data?.['_id'] === one.id);
        return { ...one, fault: memberFault(evaluationSchema, item, one.path) };
      }),
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
): Promise<{ readonly findings: readonly Finding[]; readonly records: readonly EvaluationRecord[] }> {
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
  const first = listOf(answer);
  const again = await revalidation(answer, 'list', (etag) => read(sentList, query(), etag));
  if (workspaceId === null && first.total > 0) {
    return {
      findings: [contract.fail(`a workspace that no store has holds ${countText(first.total, 'record')}`, CORRECT)],
      records: [],
    };
  }
  if (workspaceId === null) {
    return { findings: [contract.warn('only the form of an empty one was checked', NAME_ONE), again], records: [] };
  }
  if (first.ids.length === 0) {
    return { findings: [contract.warn('the workspace has no completed evaluations', NAME_ONE), again], records: [] };
  }
  const { list, faults } = await compare(readList, first, workspaceId);
  const isSound = contract.ok('order, pages, totals, filters and the search are as described');
  return {
    findings: [...recordFindings(list), ...(faults.length > 0 ? faults : [isSound]), again],
    records: list.records,
  };
}

/** A list is never absent, and not-modified only answers a read with an ETag. */
function listOf(answer: StoreAnswer<SentList>): SentList {
  if (answer.kind === 'found') return answer.record;
  throw new StoreError('refused', `the store answered a list with ${answer.kind}`);
}

/** A total that counts something else. */
function wrongTotal(total: number, matches: number, where: string): Finding {
  return fault('total is not the number of matches', `${total} instead of ${matches} ${where}`);
}

/** The faults of a list that stood still while it was compared, or of the last try. */
async function compare(
  readList: ReadList,
  first: SentList,
  workspaceId: string,
): Promise<{ readonly list: SentList; readonly faults: readonly Finding[] }> {
  for (let list = first, tries = 1; ; tries += 1) {
    const found = await Promise.all([
      faultsOf(pageFaults(readList, list)),
      faultsOf(scorecardFaults(readList, list)),
      faultsOf(searchFaults(readList, list)),
      faultsOf(workspaceFaults(readList, list, workspaceId)),
    ]);
    const faults = [...orderFaults(list), ...found.flat()];
    if (faults.length === 0 || tries === MAX_TRIES) return { list, faults };
    const again = await readList();
    if (again.total === list.total && again.ids.join() === list.ids.join()) return { list, faults };
    list = again;
  }
}

/** An answer that the gateway would refuse is a fault. Rejects if there is no whole answer. */
async function faultsOf(finding: Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await finding;
  } catch (error) {
    if (error instanceof StoreError && !isUnanswered(error)) return [contract.fail(error.message, adviceFor(error))];
    throw error;
  }
}

/** Names the records that the gateway leaves out, and the member of each, and those that are served with a wrong time. */
function recordFindings({ ids, leftOut, records }: SentList): readonly Finding[] {
  const unserved = leftOut.filter(({ surface }) => surface === undefined);
  const found = unserved.map((one) => contract.fail(faultOf(one), LEFT_OUT, one.id ?? undefined));
  found.push(...records.flatMap((record) => timeFindings(contract, record)));
  const unreported = leftOut.filter(({ surface }) => surface !== undefined);
  const [example] = unreported;
  if (example !== undefined) {
    const message = `v1 leaves out ${unreported.length} of ${ids.length} records: ${faultOf(example)}: ${example.id}`;
    found.push(contract.warn(message, 'v1 promises an e-mail address of the usual form. v2 serves these records.'));
  }
  return found.length > 0
    ? found
    : [contract.ok(ids.length === 1 ? '1 record is whole' : `${ids.length} records are whole`)];
}

function faultOf({ id, path, fault: found }: SentList['leftOut'][number]): string {
  if (id === null) return 'a record has no valid _id';
  if (path === '_id') return 'listed twice';
  if (path === 'state') return 'state=COMPLETED is ignored, since another state has';
  return `${path} is malformed${found === null ? '' : `: ${found}`}`;
}

function orderFaults({ records }: SentList): readonly Finding[] {
  const place = records.findIndex((record, index) => {
    const before = records[index - 1];
    if (before === undefined || before.createdAtMs > record.createdAtMs) return false;
    return before.createdAtMs < record.createdAtMs || before['_id'] < record['_id'];
  });
  if (place === -1) return [];
  const [before, after] = [records[place - 1]?.['_id'], records[place]?.['_id']];
  return [fault(`the order is not createdAtMs, then _id, both descending: ${before} comes before ${after}`)];
}

async function pageFaults(readList: ReadList, list: SentList): Promise<readonly Finding[]> {
  const { ids, total } = list;
  if (ids.length > MAX_LENGTH) return [fault(`limit=${MAX_LENGTH} is ignored: ${ids.length} records came`)];
  const faults: Finding[] = [];
  if (ids.length < Math.min(total, MAX_LENGTH)) {
    const further = (await readList({ offset: ids.length })).ids.filter((id) => !ids.includes(id));
    const cut = `limit=${MAX_LENGTH} is cut to ${ids.length}: offset=${ids.length} holds ${shown(further)}`;
    faults.push(further.length > 0 ? fault(cut) : wrongTotal(total, ids.length, 'without a filter'));
  } else if (ids.length > total) faults.push(wrongTotal(total, ids.length, 'without a filter'));
  const offset = Math.min(OFFSET, ids.length - 1);
  const expected = ids.slice(offset, offset + 2);
  const page = await readList({ offset, limit: 2 });
  const sent = page.ids.slice(0, 2);
  if (page.ids.length > 2) faults.push(fault(`limit=2 is ignored: ${page.ids.length} records came`));
  if (offset > 0 && sent.join() === ids.slice(0, 2).join()) {
    faults.push(fault(`offset=${offset} is ignored: ${shown(sent)} come again`));
  } else if (sent.join() !== expected.join()) {
    const difference = `offset=${offset} with limit=2 holds ${shown(sent)}, and the whole list ${shown(expected)} there`;
    faults.push(fault(difference));
  }
  if (page.total !== total)
    faults.push(fault(`total depends on the page: ${total} without offset, ${page.total} with it`));
  return faults.length > 0 ? faults : endFaults(readList, total);
}

async function endFaults(readList: ReadList, total: number): Promise<readonly Finding[]> {
  const last = await readList({ offset: total - 1, limit: 2 });
  if (last.ids.length !== 1) {
    return [fault(`total is ${total}, and after ${total - 1} records there are ${last.ids.length}`)];
  }
  const past = await readList({ offset: total, limit: 2 });
  if (past.ids.length > 0) return [fault(`past the end, offset=${total} holds ${shown(past.ids)}`)];
  return past.total === total ? [] : [fault(`past the end, total is ${past.total} instead of ${total}`)];
}

async function scorecardFaults(readList: ReadList, list: SentList): Promise<readonly Finding[]> {
  const none = await readList({ scorecardId: NOTHING });
  if (none.ids.length > 0) {
    return [fault(`scorecardId is ignored: one that no record has finds ${countText(none.ids.length, 'record')}`)];
  }
  const faults = [...filteredTotal(list, none, 'with a scorecardId that no record has')];
  const record = list.records.find(({ scorecardRef: { id } }) => id !== null && ID_PATTERN.test(id));
  const id = record?.scorecardRef.id ?? null;
  if (record === undefined || id === null) return faults;
  const found = await readList({ scorecardId: id });
  const other = found.records.find(({ scorecardRef }) => scorecardRef.id !== id);
  if (other !== undefined) return [fault(`scorecardId=${id} finds ${other['_id']}, which has another scorecard`)];
  if (!found.ids.includes(record['_id'])) {
    return [fault(`scorecardId=${id} does not find ${record['_id']}, which has it`)];
  }
  return [...faults, ...filteredTotal(list, found, `with scorecardId=${id}`)];
}

/** A total that counts what the filter left out. A page as long as the whole list's may be cut. */
function filteredTotal(list: SentList, { ids, total }: SentList, filter: string): readonly Finding[] {
  const maxLength = list.ids.length < list.total ? list.ids.length : MAX_LENGTH;
  return ids.length < maxLength && total !== ids.length ? [wrongTotal(total, ids.length, filter)] : [];
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

async function searchFaults(readList: ReadList, list: SentList): Promise<readonly Finding[]> {
  const none = await readList({ search: NOTHING });
  if (none.ids.length > 0) {
    return [fault(`q is ignored: a text that no record holds finds ${countText(none.ids.length, 'record')}`)];
  }
  const faults = [...filteredTotal(list, none, 'with a q that no record holds')];
  const searches = SEARCHED.map(async ([member, textsOf]): Promise<readonly Finding[]> => {
    // The newest with a text, so that it is on the first page of what is found.
    const record = list.records.find((one) => partOf(textsOf(one)) !== null);
    const search = record === undefined ? null : partOf(textsOf(record));
    if (record === undefined || search === null) return [];
    const found = await readList({ search });
    const other = found.records.find((one) => !holds(one, search));
    if (!found.ids.includes(record['_id'])) {
      return [fault('q does not find a record by a part, in another case, of its', `${member} (${record['_id']})`)];
    }
    if (other !== undefined) return [fault('q finds a record that does not hold the text', other['_id'])];
    return filteredTotal(list, found, `with a q from the ${member}`);
  });
  return [...faults, ...(await Promise.all(searches)).flat()];
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

async function workspaceFaults(readList: ReadList, list: SentList, workspaceId: string): Promise<readonly Finding[]> {
  const none = await readList({ workspaceIds: [NO_WORKSPACE] });
  const faults = [...filteredTotal(list, none, 'for a workspace that no store has')];
  for (const workspaceIds of [
    [workspaceId, NO_WORKSPACE],
    [NO_WORKSPACE, workspaceId],
  ]) {
    const both = await readList({ workspaceIds });
    if (both.ids.join() === list.ids.join() && both.total === list.total) continue;
    const which = workspaceIds[0] === workspaceId ? 'first' : 'second';
    faults.push(fault(`workspaceId given twice: the records of the ${which} one are missing`));
  }
  return faults;
}

function shown(ids: readonly (string | null)[]): string {
  return ids.length === 0 ? 'nothing' : ids.slice(0, MAX_NAMED).join(', ');
}
