/**
 * C11: who has seen that a call has changed, in a list or by its id, gets no part of it from before: at any gateway, whatever
 * the times. Without a change no part is fetched more often than before.
 */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  GET_CALL,
  GET_CALL_SCORECARD,
  GET_CALL_TRANSCRIPT,
  GET_REPORT_DEAL_INSIGHTS,
  LIST_CALLS,
} from '../http/common/endpoints.ts';
import { keyFor, putSubject, type Subject } from '../http/common/subject.ts';
import type { EvaluationRecord } from '../../src/domain/records.ts';
import { anEvaluation, aScoredCard, aTranscript, dealInsights } from '../support/records.ts';
import { forTest } from '../support/opened.ts';
import { BACKENDS, containing, dependency, HIT, World } from '../support/world.ts';

const HOUR_MS = 3_600_000;
/** Past the stale time of the class: its next reader waits for the store. */
const LIST_OVER_MS = 330_000;
const CALL_OVER_MS = 2 * HOUR_MS;
const RENEWED = 'evalgate; fwd=stale; stored';
const OUTDATED: unknown = expect.stringMatching(/^evalgate; hit; ttl=(0|-\d+); detail=changed$/);
const AGE_330: unknown = expect.stringMatching(/^33\d$/);

/** As the store does. */
function announce(world: World, { id, workspaceId }: Subject, mode = 'soft'): Promise<unknown> {
  return world.change('POST', '/api/changes', { mode, changes: [{ evaluation: id, workspace: workspaceId }] });
}

describe.each(BACKENDS)('%s', (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await World.start(kind);
    // So that nothing but changes renews it.
    await world.setTimes('scorecard', { fresh: '24h' });
    await world.setTimes('transcript', { fresh: '24h' });
    return () => world.close();
  });
  beforeEach(() => world.clock.advance(1000));

  /** Readers of a call, its parts and its list, who have read all of it at each gateway. */
  async function createWarm() {
    const subject = putSubject(world.store, undefined, { title: 'first' });
    const readers = {
      list: await world.readerOf(LIST_CALLS, subject),
      call: await world.readerOf(GET_CALL, subject),
      transcript: await world.readerOf(GET_CALL_TRANSCRIPT, subject),
      scorecard: await world.readerOf(GET_CALL_SCORECARD, subject),
    };
    for (const gateway of world.gateways) {
      for (const reader of Object.values(readers)) await reader.ask(gateway);
    }
    return { subject, ...readers };
  }

  /** The store's call, its transcript and its scorecard are others now. */
  function edit(subject: Subject, word: string, more: Partial<EvaluationRecord> = {}): void {
    const { id: evaluationId, workspaceId } = subject;
    putSubject(world.store, subject, { title: word, ...more });
    world.store.put({
      transcripts: [aTranscript({ evaluationId, workspaceId, format: 'speaker_text', body: `Ann: ${word}` })],
      scoredCards: [aScoredCard({ evaluationId, workspaceId, scorecard: { name: word, sections: [] } })],
    });
  }

  test('the list shows the change: then the parts are new, at every gateway, for one call each', async () => {
    const { subject, transcript, scorecard, list } = await createWarm();
    edit(subject, 'another');
    world.clock.advance(LIST_OVER_MS);
    expect((await list.ask()).text).toContain('another');
    for (const gateway of world.gateways) {
      for (const part of [transcript, scorecard]) expect((await part.ask(gateway)).text).toContain('another');
    }
    for (const gateway of world.gateways) expect((await transcript.ask(gateway)).cache).toEqual(HIT);
    expect([transcript.calls(), scorecard.calls()]).toEqual([2, 2]);
  });

  test('so does the call by its id', async () => {
    const { subject, call, transcript } = await createWarm();
    edit(subject, 'by id');
    world.clock.advance(CALL_OVER_MS);
    expect((await call.ask()).text).toContain('by id');
    expect(await transcript.ask()).toMatchObject({ text: containing('by id'), cache: RENEWED });
  });

  test('so does a searched list, and the call by its id is new too', async () => {
    const { subject, call, transcript } = await createWarm();
    const key = await keyFor(world.here, subject);
    edit(subject, 'searched for');
    world.clock.advance(1);
    const found = await world.here.get('/v2/calls?search=searched', { key });
    expect(found.text).toContain('searched for');
    for (const gateway of world.gateways) {
      expect((await call.ask(gateway)).text).toContain('searched for');
      expect((await transcript.ask(gateway)).text).toContain('searched for');
    }
    expect([call.calls(), transcript.calls()]).toEqual([1, 2]);
  });

  test('so does a refresh behind a stale copy', async () => {
    const { subject, call, transcript } = await createWarm();
    edit(subject, 'behind');
    world.clock.advance(HOUR_MS / 2);
    await call.ask();
    await world.eventually(async () => expect((await call.ask()).text).toContain('behind'));
    expect((await transcript.ask()).text).toContain('behind');
  });

  test('insights of the other surface are parts too', async () => {
    const { subject, list } = await createWarm();
    const insights = await world.readerOf(GET_REPORT_DEAL_INSIGHTS, subject);
    for (const gateway of world.gateways) await insights.ask(gateway);
    edit(subject, 'with insights');
    const { id: evaluationId, workspaceId } = subject;
    world.store.put({ dealInsights: [dealInsights({ evaluationId, workspaceId, insights: { won: 'yes' } })] });
    world.clock.advance(LIST_OVER_MS);
    await list.ask();
    for (const gateway of world.gateways) expect((await insights.ask(gateway)).text).toContain('won');
  });

  test('without a change, and with one of what differs at each read, no part is fetched', async () => {
    const { subject, transcript, scorecard, list, call } = await createWarm();
    const evaluatee = { displayName: 'Riley', givenName: 'Riley', email: 'riley@example.com' };
    const link = { objectType: 'deal', externalId: 'd', label: 'Deal' } as const;
    for (const turn of ['1', '2', '3']) {
      putSubject(world.store, subject, {
        title: 'first',
        evaluatee: { ...evaluatee, avatar: `https://example.com/${turn}` },
        shareLink: { id: turn, deactivatedAtMs: null },
        crmLinks: [{ ...link, href: `https://example.com/${turn}` }],
      });
      world.clock.advance(turn === '1' ? LIST_OVER_MS : CALL_OVER_MS);
      await (turn === '1' ? list : call).ask();
      // The first one differs by the person and the link.
      if (turn === '1') for (const part of [transcript, scorecard]) await part.ask();
    }
    const before = [transcript.calls(), scorecard.calls()];
    for (const gateway of world.gateways) for (const part of [transcript, scorecard]) await part.ask(gateway);
    expect([transcript.calls(), scorecard.calls()]).toEqual(before);
  });

  test('a part that nobody reads costs nothing, however often the call changes', async () => {
    const { subject, transcript, list } = await createWarm();
    for (const word of ['one', 'two', 'three']) {
      edit(subject, word);
      world.clock.advance(LIST_OVER_MS);
      expect((await list.ask()).text).toContain(word);
    }
    expect(transcript.calls()).toBe(1);
    expect((await transcript.ask()).text).toContain('three');
    expect(transcript.calls()).toBe(2);
  });

  test('C3: the second after which a reader gets the copy is not for one from before a change', async () => {
    const { subject, transcript, list } = await createWarm();
    edit(subject, 'late');
    world.clock.advance(LIST_OVER_MS);
    await list.ask();
    const hold = world.store.hold();
    const waiting = transcript.ask();
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    world.clock.advance(3000);
    const others = world.gateways.map((gateway) => transcript.ask(gateway));
    await world.here.get('/v2/key', { key: transcript.key });
    hold.release();
    for (const { text } of [await waiting, ...(await Promise.all(others))]) expect(text).toContain('late');
    expect(transcript.calls()).toBe(2);
  });

  test('the old copy is served, as outdated, if renewing it fails', async () => {
    const { subject, transcript, list } = await createWarm();
    edit(subject, 'failing');
    world.clock.advance(LIST_OVER_MS);
    await list.ask();
    const recover = world.store.fail(503);
    const old = await world.here.get(transcript.path, { key: transcript.key });
    expect(old.headers).toMatchObject({
      'cache-status': OUTDATED,
      'cache-control': 'private, max-age=0, must-revalidate',
      age: AGE_330,
    });
    expect(old.text).not.toContain('failing');
    recover();
    await world.eventually(async () => {
      world.clock.advance(1000);
      expect((await transcript.ask()).text).toContain('failing');
    });
  });

  test('during maintenance the old copy is served as outdated', async () => {
    const { subject, transcript, list } = await createWarm();
    edit(subject, 'maintained');
    world.clock.advance(LIST_OVER_MS);
    await list.ask();
    await world.change('PUT', '/api/cache/maintenance', { for: '1h' });
    await world.eventually(async () => expect((await transcript.ask()).cache).toEqual(OUTDATED));
    expect((await transcript.explain()).next.text).toMatch(/outdated copy .* during the maintenance/);
    await world.change('DELETE', '/api/cache/maintenance');
    await world.eventually(async () => expect((await transcript.ask()).text).toContain('maintained'));
  });

  test('`explain` shows a copy from before a change', async () => {
    const { subject, transcript, list } = await createWarm();
    edit(subject, 'explained');
    world.clock.advance(LIST_OVER_MS);
    await list.ask();
    const { memory, next } = await transcript.explain();
    expect(memory).toMatchObject({ state: 'changed', changed: 'shown', freshUntil: null });
    expect(next).toMatchObject({ from: 'store', store: 'waited-for', miss: 'changed' });
    expect(next.text).toContain('because the record has changed since the last copy');
  });

  test('a call that differed in its last five answers is unstable: its parts go by their times, until it is the same again', async () => {
    const { subject, transcript, list } = await createWarm();
    const shown: unknown[] = [];
    for (const turn of [0, 1, 2, 3, 4, 5]) {
      edit(subject, `unstable ${turn}`);
      world.clock.advance(LIST_OVER_MS);
      expect((await list.ask()).text).toContain(`unstable ${turn}`);
      shown.push(/unstable \d/.exec((await transcript.ask()).text)?.[0]);
    }
    expect(shown).toEqual([0, 1, 2, 3, 3, 3].map((turn) => `unstable ${turn}`));
    world.clock.advance(LIST_OVER_MS);
    await list.ask();
    expect((await transcript.ask()).text).toContain('unstable 5');
  });

  test('a call that is gone: its parts are asked for anew', async () => {
    const { subject, call, transcript } = await createWarm();
    world.store.evaluations.delete(subject.id);
    world.store.transcripts.delete(subject.id);
    world.clock.advance(CALL_OVER_MS);
    expect((await call.ask()).status).toBe(404);
    for (const gateway of world.gateways) expect((await transcript.ask(gateway)).status).toBe(404);
  });

  test('of many calls in one list each that has changed is renewed, and no other', async () => {
    const workspaceId = (await world.reader(LIST_CALLS)).subject.workspaceId;
    const subjects = Array.from({ length: 20 }, (_, n) => ({
      workspaceId,
      id: `ev_${kind}_many_${n}`,
      scorecardId: workspaceId,
    }));
    for (const subject of subjects) putSubject(world.store, subject, { title: 'first' });
    const list = await world.readerOf(LIST_CALLS, { workspaceId, id: 'none', scorecardId: workspaceId });
    const parts = await Promise.all(subjects.map((subject) => world.readerOf(GET_CALL_TRANSCRIPT, subject)));
    const askAll = async (): Promise<readonly string[]> => {
      const texts: string[] = [];
      for (const gateway of world.gateways) for (const part of parts) texts.push((await part.ask(gateway)).text);
      return texts;
    };
    await list.ask();
    await askAll();
    world.store.put({ evaluations: [anEvaluation({ _id: 'ev_new', workspaceId })] });
    for (const subject of subjects.slice(0, 10)) edit(subject, 'many');
    world.clock.advance(LIST_OVER_MS);
    await list.ask();
    const texts = await askAll();
    expect(texts.filter((text) => text.includes('many'))).toHaveLength(10 * world.gateways.length);
    expect(parts.map((part) => part.calls())).toEqual(parts.map((_, n) => (n < 10 ? 2 : 1)));
  });

  describe('announced at the door', () => {
    test('each part is new at every gateway, for one call; so is the list', async () => {
      const { subject, ...readers } = await createWarm();
      edit(subject, 'announced');
      world.clock.advance(1000);
      await announce(world, subject);
      for (const gateway of world.gateways) {
        for (const reader of Object.values(readers)) expect((await reader.ask(gateway)).text).toContain('announced');
      }
      for (const { calls } of [readers.transcript, readers.scorecard, readers.list]) expect(calls()).toBe(2);
    });

    test('hard: the old copy is never served again', async () => {
      const { subject, transcript } = await createWarm();
      await announce(world, subject, 'hard');
      const recover = world.store.fail(503);
      for (const gateway of world.gateways) expect((await transcript.ask(gateway)).status).toBe(500);
      recover();
    });

    test('a change of another workspace is none here', async () => {
      const { subject, transcript, list } = await createWarm();
      const { workspaceId } = (await createWarm()).subject;
      world.clock.advance(1000);
      await announce(world, { ...subject, workspaceId });
      for (const gateway of world.gateways) {
        for (const reader of [transcript, list]) expect((await reader.ask(gateway)).cache).toEqual(HIT);
      }
    });
  });
});

const shareSchema = z.object({
  classes: z.array(z.object({ class: z.string(), refreshes: z.number(), unannouncedRatio: z.number().nullable() })),
});
const announcementsSchema = z.object({
  classes: z.array(
    z.object({ class: z.string(), announcements: z.object({ unannouncedRatio: z.number().nullable() }) }),
  ),
});

/** Each of so many calls changes, with an announcement or without, and is read again. */
async function changeMany(world: World, calls: number, isAnnounced: boolean): Promise<void> {
  const readers = await Promise.all(Array.from({ length: calls }, () => world.reader(GET_CALL)));
  for (const reader of readers) await reader.ask();
  world.clock.advance(CALL_OVER_MS);
  for (const { subject } of readers) putSubject(world.store, subject, { title: 'changed' });
  const changes = readers.map(({ subject }) => ({ evaluation: subject.id, workspace: subject.workspaceId }));
  if (isAnnounced) await world.change('POST', '/api/changes', { changes });
  for (const reader of readers) expect((await reader.ask()).text).toContain('changed');
}

describe('changes that nobody has announced', () => {
  test.each([
    [true, 0, 'ok'],
    [false, 1, 'degraded'],
  ] as const)(
    'announced: %j: their share of refreshes is %d, and `answers` is %s',
    async (isAnnounced, share, status) => {
      const world = await forTest(World.start('memory', { env: { CHANGES_ANNOUNCED: 'true' } }));
      await changeMany(world, 100, isAnnounced);
      const { classes } = shareSchema.parse((await world.here.admin('GET', '/api/cache')).json);
      const row = classes.find((one) => one.class === 'evaluation');
      expect(row).toEqual({ class: 'evaluation', refreshes: 100, unannouncedRatio: share });
      const advice = announcementsSchema.parse((await world.here.admin('GET', '/api/cache/advice')).json);
      const { announcements } = advice.classes.find((one) => one.class === 'evaluation') ?? {};
      // One more change is added, half of it announced.
      expect(announcements).toEqual({ unannouncedRatio: (100 * share + 0.5) / 101 });
      world.clock.advance(10_000);
      await (await world.reader(LIST_CALLS)).ask();
      await world.eventually(async () => expect(await dependency(world.here, 'answers')).toContain(status));
    },
  );
});
