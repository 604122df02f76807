/** Changes that the store announces, and the judgement of what an answer shows: one process, each step in the hands of the test. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Changes, type AnnouncedChange } from '../../../src/cache/changes.ts';
import { digestOf, judge, type LastSeen, UNSTABLE_AFTER } from '../../../src/cache/digest.ts';
import { MemoryTier } from '../../../src/cache/memory-tier.ts';
import { memoryDropper, memoryMarker } from '../../../src/cache/purge.ts';
import { LATE_MS, PurgeLog } from '../../../src/cache/purge-log.ts';
import { ReadThrough } from '../../../src/cache/read-through.ts';
import { cacheRequest, recordRequest } from '../../../src/cache/request.ts';
import { MemorySeenCalls, noteForgotten } from '../../../src/cache/seen-calls.ts';
import { UNSHARED } from '../../../src/cache/shared-cache.ts';
import type { Changed } from '../../../src/journal/journal.ts';
import { MemoryJournal } from '../../../src/journal/memory-journal.ts';
import { EVALUATION_KINDS, type RecordKind, RESOURCES } from '../../../src/upstream/resources.ts';
import { StoreError } from '../../../src/upstream/store-error.ts';
import type { Fetch } from '../../../src/upstream/store.ts';
import { FakeTime } from '../../support/flight-world.ts';
import { anEvaluation, aTranscript, WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

const TTL = { freshMs: 86_400_000, staleMs: 0, errorMs: 7 * 86_400_000 };
const CALL: AnnouncedChange = {
  tag: 'evaluation:ev_1',
  workspace: WORKSPACE_A,
  kinds: EVALUATION_KINDS,
  isCreated: false,
  isDeleted: false,
  previousWorkspace: null,
  etags: {},
};

/** A gateway without Redis, and a store whose answers have a number in their text, and in their validator. */
class World {
  readonly time = new FakeTime();
  readonly memory = new MemoryTier({ maxBytes: 10_000_000, clock: this.time });
  readonly journal = new MemoryJournal();
  readonly events: Changed[] = [];
  readonly seenCalls = new MemorySeenCalls();
  readonly purges = new PurgeLog({
    journal: this.journal,
    clock: this.time,
    onHard: memoryDropper(this.memory, this.time),
    onForgetting: (marks) => {
      memoryMarker(this.memory)(marks);
      for (const one of marks) void noteForgotten(one, this.seenCalls);
    },
    isAlone: true,
  });
  readonly changes = new Changes({
    journal: this.journal,
    purges: this.purges,
    seenCalls: this.seenCalls,
    memory: this.memory,
    clock: this.time,
    onFailed: (operation) => expect.fail(operation),
  });
  /** The version that the store has now. */
  version = 1;
  isDown = false;
  /** Whether the record is deleted there, and no replica lags. */
  isGone = false;
  calls = 0;
  readonly #cache: ReadThrough;

  constructor() {
    this.journal.on('changes', (event) => void this.events.push(event));
    this.#cache = new ReadThrough({
      store: {
        fetch: this.#fetch,
        hasRoom: () => true,
        maintenance: { current: () => null },
        maxWaitMs: 60_000,
      },
      memory: this.memory,
      sharedCache: UNSHARED,
      endEverywhere: async () => {},
      ttl: { of: () => TTL },
      purges: this.purges,
      changes: this.changes,
      clock: this.time,
      timers: this.time,
      events: {},
    });
  }

  announce(change: Partial<AnnouncedChange> = {}, mode: Changed['mode'] = 'soft'): Promise<Changed> {
    return this.announceAll([{ ...CALL, ...change }], mode);
  }

  announceAll(changes: readonly AnnouncedChange[], mode: Changed['mode'] = 'soft'): Promise<Changed> {
    return this.changes.announce(mode, changes, async (event) => {
      await this.journal.append(event);
      return event;
    });
  }

  /** A reader's answer: the number in the text and the outcome, and how many calls that took. */
  async read(kind: RecordKind | 'list', workspace = WORKSPACE_A, id = 'ev_1'): Promise<string> {
    const before = this.calls;
    const query = { workspaceIds: [workspace], search: null, scorecardId: null, offset: 0, limit: 10 };
    const request = kind === 'list' ? cacheRequest(RESOURCES.list, query) : recordRequest(kind, id);
    const { entry, outcome } = await this.#cache.read(request, { requestId: 'r', workspaceIds: [workspace] });
    const text = entry.answer.kind === 'found' ? JSON.stringify(entry.answer.record) : 'none';
    return `${/version (\d+)/.exec(text)?.[1] ?? text} ${outcome}, ${this.calls - before}`;
  }

  readonly #fetch: Fetch = async (resource, params, { ifNoneMatch }) => {
    this.calls += 1;
    if (this.isDown) throw new StoreError('unreachable', 'the store is down');
    const [id = '', part] = new URL(resource.path(params), 'http://store').pathname.split('/').slice(4);
    if (id === 'none' || (this.isGone && id !== '')) return { kind: 'absent', code: 'NOT_FOUND' };
    const etag = `"${this.version}"`;
    if (ifNoneMatch === etag) return { kind: 'not-modified' };
    const evaluation = anEvaluation({ _id: id === '' ? 'ev_1' : id, title: `version ${this.version}` });
    const whole = id === '' ? { items: [evaluation], total: 1 } : evaluation;
    const raw = part === undefined ? whole : aTranscript({ evaluationId: id, body: `version ${this.version}` });
    return { kind: 'found', record: await resource.parse(raw, params, () => {}), etag, bytes: 100 };
  };
}

let world: World;
beforeEach(() => {
  world = new World();
});

async function isCreated(change: Partial<AnnouncedChange>): Promise<boolean | undefined> {
  const { changes } = await world.announce(change);
  return changes[0]?.isCreated;
}

/** The answer to a reader of the transcript while the store is down: what `read` says, or the error. */
function readWhileDown(): Promise<string> {
  world.isDown = true;
  return world.read('transcript').catch((error: unknown) => (error instanceof StoreError ? error.kind : 'a bug'));
}

async function warm(): Promise<void> {
  for (const kind of ['list', 'evaluation', 'transcript'] as const) await world.read(kind);
  await world.time.advance(2000);
  world.version = 2;
}

/** The transcript is renewed, then asked for again after 1, 3 and 10 s, and then taken as it is. */
async function expectAskedAgain(): Promise<void> {
  expect(await world.read('transcript')).toBe('2 miss, 1');
  for (const seconds of [1, 3, 10]) {
    await world.time.advance(seconds * 1000 - 1);
    expect(await world.read('transcript')).toBe('2 hit, 0');
    await world.time.advance(1);
    expect(await world.read('transcript')).toBe('2 miss, 1');
  }
  await world.time.advance(60_000);
  expect(await world.read('transcript')).toBe('2 hit, 0');
}

describe('C11: an announced change', () => {
  test('renews each named part before it is next served, once, and costs nothing until then', async () => {
    await warm();
    const before = world.calls;
    for (let i = 0; i < 100; i += 1) await world.announce();
    expect(world.calls).toBe(before);
    expect(await world.read('transcript')).toBe('2 miss, 1');
    expect(await world.read('transcript')).toBe('2 hit, 0');
    expect(await world.read('evaluation')).toBe('2 miss, 1');
  });

  test('is of the kinds that it names', async () => {
    await warm();
    await world.announce({ kinds: ['transcript'] });
    expect(await world.read('evaluation')).toBe('1 hit, 0');
    expect(await world.read('list')).toBe('1 hit, 0');
    expect(await world.read('transcript')).toBe('2 miss, 1');
  });

  test('is of its workspace: one under another is that of nobody here', async () => {
    await warm();
    await world.announce({ workspace: WORKSPACE_B });
    expect(await world.read('transcript')).toBe('1 hit, 0');
    await world.announce({ workspace: WORKSPACE_B, previousWorkspace: WORKSPACE_A });
    expect(await world.read('transcript')).toBe('2 miss, 1');
  });

  test.each([
    ['soft', '1 changed, 1'],
    ['hard', 'unreachable'],
  ] as const)('%s: the old copy if renewing it fails', async (mode, outdated) => {
    await warm();
    await world.announce({}, mode);
    expect(await readWhileDown()).toBe(outdated);
  });

  test.each([
    ['soft', '1 changed, 1'],
    ['hard', 'unreachable'],
  ] as const)('%s: also long after it is forgotten', async (mode, outdated) => {
    await warm();
    await world.announce({}, mode);
    for (let i = 0; i < 3; i += 1) {
      await world.time.advance(LATE_MS + 1000);
      await world.announce({ tag: 'evaluation:ev_other', isDeleted: true });
    }
    expect(world.purges.changeTable.upTo(Infinity).filter(({ tag }) => tag === CALL.tag)).toEqual([]);
    expect(await readWhileDown()).toBe(outdated);
    await world.time.advance(2000);
    world.isDown = false;
    expect(await world.read('transcript')).toBe('2 miss, 1');
    expect(await world.read('transcript')).toBe('2 hit, 0');
  });

  test('renews lists of the workspace, at most once a second', async () => {
    await warm();
    await world.announce();
    expect(await world.read('list')).toBe('2 miss, 1');
    world.version = 3;
    await world.announce();
    expect(await world.read('list')).toBe('2 hit, 0');
    await world.time.advance(1000);
    expect(await world.read('list')).toBe('3 miss, 1');
    await world.time.advance(1000);
    await world.announce({ workspace: WORKSPACE_B });
    expect(await world.read('list')).toBe('3 hit, 0');
  });

  test('counts once: what its renewal brings marks nothing again', async () => {
    await warm();
    await world.announce();
    expect(await world.read('transcript')).toBe('2 miss, 1');
    expect(await world.read('evaluation')).toBe('2 miss, 1');
    expect(await world.read('transcript')).toBe('2 hit, 0');
    expect(world.events).toHaveLength(1);
  });

  test('counts once, long after it is forgotten too; and a later one that nobody announced is found', async () => {
    await warm();
    await world.announce();
    for (let i = 0; i < 3; i += 1) {
      await world.time.advance(LATE_MS + 1000);
      await world.announce({ tag: 'evaluation:ev_other', isDeleted: true });
    }
    const before = world.events.length;
    expect(await world.read('evaluation')).toBe('2 miss, 1');
    expect(world.events).toHaveLength(before);
    world.version = 3;
    await world.time.advance(8 * 86_400_000);
    expect(await world.read('evaluation')).toBe('3 miss, 1');
    expect(world.events.slice(before)).toMatchObject([{ isAnnounced: false, changes: [{ tag: CALL.tag }] }]);
  });

  test('holds for unstable calls', async () => {
    await warm();
    for (let i = 0; i < UNSTABLE_AFTER + 1; i += 1) {
      world.version += 1;
      await world.time.advance(8 * 86_400_000);
      await world.read('evaluation');
    }
    expect(world.changes.unstable()).toEqual(['ev_1']);
    await world.read('transcript');
    world.version += 1;
    await world.announce();
    expect(await world.read('transcript')).toBe(`${world.version} miss, 1`);
  });

  test('ends the negative entries of its workspace, and no other', async () => {
    for (const workspace of [WORKSPACE_A, WORKSPACE_B]) await world.read('transcript', workspace, 'none');
    await world.announce({ tag: 'evaluation:none', isCreated: true });
    expect(await world.read('transcript', WORKSPACE_B, 'none')).toBe('none hit, 0');
    expect(await world.read('transcript', WORKSPACE_A, 'none')).toBe('none miss, 1');
  });

  test('is a creation if nothing has ever shown the id in that workspace', async () => {
    await warm();
    expect(await isCreated({})).toBe(false);
    expect(await isCreated({ workspace: WORKSPACE_B })).toBe(true);
    expect(await isCreated({ tag: 'evaluation:ev_2' })).toBe(true);
    expect(await isCreated({ tag: 'evaluation:ev_2', isDeleted: true })).toBe(false);
    expect(await isCreated({ tag: 'scorecard:sc_1', kinds: ['rubric'] })).toBe(false);
  });

  test('with a validator: another one is asked for again after 1, 3 and 10 s, and then taken', async () => {
    await warm();
    await world.announce({ etags: { transcript: '"9"' } });
    await expectAskedAgain();
  });

  test('with a validator: once an answer has it, nothing is asked for again', async () => {
    await warm();
    await world.announce({ etags: { transcript: '"3"' } });
    await world.read('transcript');
    world.version = 3;
    await world.time.advance(1000);
    expect(await world.read('transcript')).toBe('3 miss, 1');
    await world.time.advance(60_000);
    expect(await world.read('transcript')).toBe('3 hit, 0');
  });

  test.each([
    ['a deletion', { isDeleted: true }],
    ['a move', { workspace: WORKSPACE_B, previousWorkspace: WORKSPACE_A }],
  ] as const)('%s that a replica does not show yet is asked for again after 1, 3 and 10 s', async (_, change) => {
    await warm();
    await world.announce(change);
    await expectAskedAgain();
    expect(await world.read('evaluation')).toBe('2 miss, 1');
    world.isGone = true;
    await world.time.advance(1000);
    expect(await world.read('evaluation')).toBe('none miss, 1');
    // Another replica lags still.
    world.isGone = false;
    await world.time.advance(TTL.freshMs);
    expect(await world.read('evaluation')).toBe('2 miss, 1');
    await world.time.advance(3000);
    expect(await world.read('evaluation')).toBe('2 miss, 1');
  });

  test('a deleted record that is announced again is there', async () => {
    await warm();
    await world.announce({ isDeleted: true });
    await world.announce({ isCreated: true });
    expect(await world.read('transcript')).toBe('2 miss, 1');
    await world.time.advance(60_000);
    expect(await world.read('transcript')).toBe('2 hit, 0');
  });

  test('10,000 at once cost the store nothing, and are forgotten', async () => {
    await warm();
    const before = world.calls;
    for (let i = 0; i < 10; i += 1) {
      const changes = Array.from({ length: 1000 }, (_, n) => ({
        ...CALL,
        tag: `evaluation:ev_${i}_${n}`,
        isCreated: true,
      }));
      await world.announceAll(changes);
    }
    expect(world.calls).toBe(before);
    for (let i = 0; i < 3; i += 1) {
      await world.time.advance(LATE_MS + 1000);
      await world.announce();
    }
    expect(world.purges.changeTable.upTo(Infinity).length).toBeLessThan(10);
  });
});

/** The stamp of an answer that was requested then. */
function at(requestedAtMs: number, sequence = 5) {
  return { requestedAtMs, receivedAtMs: requestedAtMs + 100, position: { history: 'h', sequence } };
}

describe('C11: what an answer shows', () => {
  const seen: LastSeen = { digest: 'one', differed: 0, ...at(1000), announced: 0 };

  test('is in the journal before the answer leaves', async () => {
    await warm();
    await world.time.advance(8 * 86_400_000);
    const order: string[] = [];
    world.journal.on('changes', () => void order.push('event'));
    const append = world.journal.append.bind(world.journal);
    vi.spyOn(world.journal, 'append').mockImplementationOnce(async (event) => {
      await new Promise<void>((resolve) => void world.time.after(500, resolve));
      return append(event);
    });
    const reading = world.read('evaluation').then((answer) => order.push(answer));
    await world.time.advance(400);
    expect(order).toEqual([]);
    await world.time.advance(200);
    await reading;
    expect(order).toEqual(['event', '2 miss, 1']);
  });

  test('the first answer is no change', () => {
    expect(judge(null, 'one', at(1000), 0)).toMatchObject({ isChanged: false, seen: { digest: 'one', differed: 0 } });
  });

  test('the same is noted again only after an hour, so that it is not forgotten', () => {
    expect(judge(seen, 'one', at(2000), 0).seen).toBeNull();
    expect(judge(seen, 'one', at(3_700_000), 0).seen).toMatchObject({ requestedAtMs: 3_700_000 });
  });

  test('an older answer that comes late marks, and does not take the place of the newer one', () => {
    expect(judge(seen, 'two', at(500), 0)).toEqual({ isChanged: true, isUnstable: false, seen: null });
  });

  test('C9: what was noted by a clock far ahead does not stay', () => {
    const future = { ...seen, requestedAtMs: 9_000_000 };
    expect(judge(future, 'two', at(500), 0)).toMatchObject({ isChanged: true, seen: { digest: 'two' } });
  });

  test.each([
    ['it was asked for after the announcement', 7, 7, false],
    ['it was asked for before the announcement', 6, 7, true],
    ['the last one was seen after the announcement', 7, 4, true],
  ] as const)('a change is announced: %s', (_when, sequence, announced, isChanged) => {
    expect(judge(seen, 'two', at(2000, sequence), announced).isChanged).toBe(isChanged);
  });

  test('what is published decides', () => {
    const record = anEvaluation();
    const digest = digestOf(record);
    const { evaluatee } = record;
    const same = [
      { evaluatee: { ...evaluatee, avatar: 'https://example.com/another' } },
      { shareLink: { id: 'another', deactivatedAtMs: 1 } },
      { crmLinks: record.crmLinks.map((link) => ({ ...link, href: 'https://example.com/another' })) },
    ];
    for (const change of same) expect(digestOf(anEvaluation(change))).toBe(digest);
    const others = [
      { title: 'Another' },
      { overallScore: 1 },
      { state: 'FAILED' as const },
      { evaluatee: { ...evaluatee, givenName: 'Another' } },
      { crmLinks: record.crmLinks.map((link) => ({ ...link, label: 'Another' })) },
    ];
    expect(new Set([digest, ...others.map((change) => digestOf(anEvaluation(change)))]).size).toBe(others.length + 1);
  });
});
