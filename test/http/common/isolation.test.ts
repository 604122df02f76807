/**
 * Whatever keys ask for, in whatever order, with whatever is cached, stale, moved or failing: no body and no header ever
 * holds anything of a workspace that the key may not see, or of a surface whose scope it lacks.
 */
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Scope, SCOPES } from '../../../src/keys/key.ts';
import { type Reply, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { anEvaluation, aScorecard, aScoredCard, aTranscript, dealInsights } from '../../support/records.ts';
import { ENDPOINTS, type EndpointRow } from './endpoints.ts';

let gateway: TestGateway;
let tenants: readonly Tenant[];

const WORKSPACES = ['a', 'b', 'c'].map((letter) => `${letter.repeat(8)}-0000-4000-8000-000000000000`);
const IDS = Array.from({ length: 6 }, (_, i) => `ev_${i}`);
const SCORECARD_IDS = Array.from({ length: 3 }, (_, i) => `sc_${i}`);

interface Tenant {
  readonly key: string;
  readonly workspaceIds: readonly string[];
  readonly scopes: readonly Scope[];
}

const [A = '', B = '', C = ''] = WORKSPACES;
const RIGHTS: readonly Omit<Tenant, 'key'>[] = [
  { workspaceIds: [A], scopes: SCOPES },
  { workspaceIds: [B], scopes: SCOPES },
  { workspaceIds: [A, B], scopes: SCOPES },
  { workspaceIds: [C], scopes: ['calls.read'] },
  { workspaceIds: [A, C], scopes: ['reports.read'] },
  { workspaceIds: [B], scopes: ['coaching.read'] },
  { workspaceIds: [A, B, C], scopes: ['coaching.read', 'calls.read'] },
];

/** Stands in every text of a workspace's records. */
function markerOf(workspaceId: string): string {
  return `marker-${workspaceId.charAt(0)}`;
}

/** Puts the record, and all its parts, into that workspace: it may have been in another before. */
function putEvaluation(id: string, workspaceId: string): void {
  const text = markerOf(workspaceId);
  const part = { evaluationId: id, workspaceId };
  const card = aScoredCard(part);
  gateway.store.put({
    evaluations: [
      anEvaluation({
        _id: id,
        workspaceId,
        title: text,
        ownerUserId: text,
        source: text,
        scorecardRef: { id: 'sc_0', name: text },
        evaluatee: { userId: text, displayName: text, givenName: text, email: `${text}@example.com`, avatar: text },
        people: [{ name: text, email: null, spoke: true, attended: true }],
        crmLinks: [{ objectType: 'deal', externalId: text, label: text, href: text }],
      }),
    ],
    transcripts: [aTranscript({ ...part, body: `Riley: ${text}\nSam: ${text}` })],
    scoredCards: [{ ...card, scorecard: { name: text, sections: [] } }],
    dealInsights: [dealInsights({ ...part, permalink: text, insights: { text } })],
  });
}

function putScorecard(id: string, workspaceId: string): void {
  const text = markerOf(workspaceId);
  gateway.store.put({ scorecards: [aScorecard({ _id: id, workspaceId, name: text, rubric: { text } })] });
}

beforeAll(async () => {
  gateway = await startTestGateway();
  tenants = await Promise.all(
    RIGHTS.map(async (right) => ({
      ...right,
      key: await gateway.issueKey({ ...right, perMinute: 1_000_000_000, perHour: 1_000_000_000 }),
    })),
  );
});
afterAll(() => gateway.close());

interface Read {
  readonly kind: 'read';
  /** Which of the tenants. */
  readonly tenant: number;
  readonly path: string;
  readonly scope: Scope;
  /** The workspaces that the answer may show if the key may see them. */
  readonly shownIds: readonly string[];
  readonly etag: string;
}

type Change =
  | { readonly kind: 'move'; readonly id: string; readonly workspaceId: string }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'fail' }
  | { readonly kind: 'recover' };

type Step = Read | Change;

const workspace = fc.constantFrom(...WORKSPACES);
const query: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  workspace.map((id) => `?workspaceId=${id}`),
  workspace.map((id) => `?workspaceId=${id.toUpperCase()}`),
  workspace.map((id) => `?search=${markerOf(id)}`),
  fc.constantFrom('?page=2', '?pageSize=2', '?limit=2', '?scorecardId=sc_0', '?raw', '?maxChars=4&page=2', '?search='),
);
const read: fc.Arbitrary<Step> = fc
  .record({
    tenant: fc.nat({ max: RIGHTS.length - 1 }),
    endpoint: fc.constantFrom<EndpointRow>(...ENDPOINTS),
    /** Mostly what the tenant may ask for, as far as that can be told; else anything. */
    isOwn: fc.constantFrom(true, true, false),
    workspace: fc.nat({ max: 5 }),
    record: fc.nat({ max: 5 }),
    query,
    etag: fc.constantFrom('', '', '', '*'),
  })
  .map(({ tenant, endpoint, isOwn, workspace: place, record, query: asked, etag }) => {
    const own = RIGHTS[tenant]?.workspaceIds ?? [];
    const workspaceId = (isOwn ? own[place % own.length] : WORKSPACES[place % WORKSPACES.length]) ?? '';
    const number = isOwn ? WORKSPACES.indexOf(workspaceId) + 3 * (record % 2) : record;
    const path = endpoint.path({ workspaceId, id: IDS[number] ?? '', scorecardId: SCORECARD_IDS[number % 3] ?? '' });
    // v1 shows nothing of another workspace than the path's, not even to a key that may see both (K5).
    const shownIds = endpoint.surface === 'v1' ? [workspaceId] : WORKSPACES;
    return { kind: 'read', tenant, path: path + asked, scope: endpoint.scope, shownIds, etag };
  });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 16, arbitrary: read },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('move' as const),
      id: fc.constantFrom(...IDS, ...SCORECARD_IDS),
      workspaceId: workspace,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1000, 40_000, 400_000, 7_200_000) }),
  },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ kind: 'fail' }, { kind: 'recover' }) },
);

/** The markers that a tenant must not see in the answer. */
function forbiddenTo(tenant: Tenant, { scope, shownIds }: Read): readonly string[] {
  const isAllowed = (id: string): boolean =>
    tenant.scopes.includes(scope) && tenant.workspaceIds.includes(id) && shownIds.includes(id);
  return WORKSPACES.filter((id) => !isAllowed(id)).map(markerOf);
}

function leaks(reply: Reply, forbidden: readonly string[]): readonly string[] {
  const shown = reply.text + JSON.stringify(reply.headers);
  return forbidden.filter((marker) => shown.includes(marker));
}

/** One run: readers go on while others come, until the world around them changes. */
class Run {
  served = 0;
  refused = 0;
  /** What was shown to whom it must not be. */
  readonly leaks: string[] = [];
  #underWay: Promise<void>[] = [];
  #recover: (() => void) | null = null;

  async play(steps: readonly Step[]): Promise<void> {
    for (const next of steps) {
      if (next.kind === 'read') this.#underWay.push(this.#read(next));
      else await this.#change(next);
    }
    await this.#change({ kind: 'recover' });
    // Past every error time, so that the next run begins with nothing that is of use.
    gateway.clock.advance(8 * 86_400_000);
  }

  async #change(change: Change): Promise<void> {
    await Promise.all(this.#underWay);
    this.#underWay = [];
    if (change.kind === 'wait') gateway.clock.advance(change.ms);
    else if (change.kind === 'move')
      (change.id.startsWith('sc') ? putScorecard : putEvaluation)(change.id, change.workspaceId);
    else {
      this.#recover?.();
      this.#recover = change.kind === 'fail' ? gateway.store.fail(503) : null;
    }
  }

  async #read(asked: Read): Promise<void> {
    const tenant = tenants[asked.tenant];
    if (tenant === undefined) throw new Error('there is no such tenant');
    const headers = asked.etag === '' ? {} : { 'if-none-match': asked.etag };
    const reply = await gateway.get(asked.path, { key: tenant.key, headers });
    if (reply.status === 200 || reply.status === 304) this.served += 1;
    else this.refused += 1;
    const hasScope = tenant.scopes.includes(asked.scope);
    const found = leaks(reply, forbiddenTo(tenant, asked));
    if (found.length > 0 || (!hasScope && reply.status !== 403)) {
      const holder = `${tenant.scopes.join()} in ${tenant.workspaceIds.join()}`;
      this.leaks.push(`${asked.path} to ${holder}: ${reply.status} ${reply.text}`);
    }
  }
}

test('K5, K6, K7, C4: no interleaving of readers ever shows one what is not its own', async () => {
  let served = 0;
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
      for (const [i, id] of IDS.entries()) putEvaluation(id, WORKSPACES[i % 3] ?? '');
      for (const [i, id] of SCORECARD_IDS.entries()) putScorecard(id, WORKSPACES[i % 3] ?? '');
      const run = new Run();
      await run.play(steps);
      expect(run.leaks).toEqual([]);
      served += run.served;
      refused += run.refused;
    }),
    { numRuns: 50 },
  );
  // Both happened often, so that neither was a matter of course.
  expect(served).toBeGreaterThan(100);
  expect(refused).toBeGreaterThan(100);
});
