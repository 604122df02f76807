/** The evaluation record and the deal insights of a call. */
import type { DealInsightsRecord, EvaluationRecord } from '../domain/records.ts';
import type { Buyer, Call } from './call.ts';
import { createFacts } from './facts.ts';
import { BASE62, createRandom } from './random.ts';
import type { Random } from './random.ts';
import { createSectionScores, templateOf } from './scored-card.ts';
import { CALL_SOURCES } from './vocabulary/business.ts';
import { fill } from './vocabulary/grammar.ts';
import { createPerson } from './world.ts';

type Attendee = EvaluationRecord['people'][number];
type CrmLink = EvaluationRecord['crmLinks'][number];
type ShareLink = NonNullable<EvaluationRecord['shareLink']>;

const DAY_MS = 86_400_000;

/** The same record for the same seed and call. What is not scored yet has no scores. */
export function createEvaluation(seed: number, call: Call): EvaluationRecord {
  const random = createRandom(seed, 'evaluation', call.id);
  const isScored = call.state === 'COMPLETED';
  const scores = isScored ? createSectionScores(seed, call) : [];
  const known = scores.flatMap(({ score }) => (score === null ? [] : [score]));
  const { seller } = call;
  return {
    _id: call.id,
    workspaceId: call.workspace.id,
    title: `${call.kind}: ${call.account.name}`,
    ownerUserId: random.chance(0.8) ? seller.userId : call.workspace.managerId,
    state: call.state,
    overallScore: known.length === 0 ? 0 : Math.round((10 * known.reduce((a, b) => a + b, 0)) / known.length) / 10,
    categoryScores: scores.map(({ section, score }) => ({ key: section.key, label: section.name, value: score })),
    scorecardRef: { id: call.scorecard?.id ?? null, name: call.scorecard?.name ?? templateOf(call).name },
    createdAtMs: call.createdAtMs,
    durationSeconds: call.durationSeconds,
    source: random.pick(CALL_SOURCES),
    evaluatee: {
      ...(seller.publishesUserId ? { userId: seller.userId } : {}),
      displayName: seller.name,
      givenName: seller.givenName,
      email: seller.email,
      ...(seller.avatar === undefined ? {} : { avatar: seller.avatar }),
    },
    ...createShare(random, call),
    people: createPeople(random, call),
    crmLinks: createCrmLinks(random, call),
  };
}

/** What the deal's insights say agrees with the call's transcript. */
export function createDealInsights(seed: number, call: Call): DealInsightsRecord {
  const random = createRandom(seed, 'insights', call.id);
  const { facts, deal } = createFacts(seed, call);
  const say = (text: string): string => fill(text, facts, random);
  return {
    evaluationId: call.id,
    workspaceId: call.workspace.id,
    permalink: `https://app.${call.workspace.vendor.domain}/evaluations/${call.id}/insights`,
    insights: {
      summary: say('{account} wants {outcome} by {month} because {pain}.'),
      stage: random.pick(['discovery', 'evaluation', 'proposal', 'negotiation', 'verbal commit']),
      amount: { value: deal.yearlyNet, currency: deal.currency.code, per: 'year' },
      winProbability: random.int(15, 90) / 100,
      stakeholders: call.buyers.map(({ name, role }) => ({
        name,
        role,
        sentiment: random.pick(['positive', 'neutral', 'sceptical', null]),
      })),
      competitors: random.chance(0.7) ? [say('{rival}')] : [],
      risks: [
        { kind: 'timing', note: say('Nothing will be touched after {month}.'), severity: random.int(1, 5) },
        { kind: 'budget', note: say('{budget} in the plan against {net} offered.'), severity: random.int(1, 5) },
      ],
      nextSteps: [
        { owner: call.seller.name, action: say('Working session about {system}'), due: say('{weekday}') },
        { owner: call.buyers[0].name, action: 'Send the figures of last quarter', due: null },
      ],
    },
  };
}

/** Active, deactivated, null or absent. */
function createShare(random: Random, call: Call): { shareLink?: ShareLink | null } {
  const active = { id: `shr_${random.text(BASE62, 10)}`, deactivatedAtMs: null };
  const deactivated = { ...active, deactivatedAtMs: call.createdAtMs + random.int(1, 90 * DAY_MS) };
  if (call.isShowcase) return { shareLink: active };
  return random.pick([{ shareLink: active }, { shareLink: deactivated }, { shareLink: null }, {}]);
}

/** The two who are heard in the transcript, those who were only invited, and at times a colleague or someone unknown. */
function createPeople(random: Random, call: Call): Attendee[] {
  const [first, second, ...others] = call.buyers;
  const seller: Attendee = { name: call.seller.name, email: call.seller.email, spoke: true, attended: true };
  const people = [seller, attendee(random, first, true), attendee(random, second, true)];
  people.push(...others.map((buyer) => attendee(random, buyer, false)));
  if (random.chance(0.15)) {
    const { name, email } = createPerson(random, call.workspace.vendor.domain);
    people.push({ name, email, spoke: random.chance(0.5), attended: true });
  }
  // Somebody who dialled in: the recorder knows neither who nor from where.
  if (random.chance(0.01)) people.push({ name: null, email: null, spoke: true, attended: true });
  return people;
}

function attendee(random: Random, { name, email }: Buyer, spoke: boolean): Attendee {
  const attended = spoke || random.chance(0.5);
  const known = random.weighted([
    [{ name, email }, 80],
    [{ name, email: null }, 11],
    [{ name: null, email }, 9],
  ]);
  return { ...known, spoke, attended };
}

function createCrmLinks(random: Random, call: Call): CrmLink[] {
  const { name, domain } = call.account;
  const link = (objectType: CrmLink['objectType'], label: string): CrmLink => {
    const externalId = `${random.text('0123456789', 3)}${random.text(BASE62, 12)}`;
    const href = random.chance(0.8) ? `https://crm.example/${objectType}s/${externalId}?from=${domain}` : null;
    return { objectType, externalId, label, href };
  };
  const links: CrmLink[] = [];
  const deals = call.isShowcase ? 1 : random.pick([0, 1, 1, 1, 2]);
  for (let i = 0; i < deals; i += 1) {
    links.push(link('deal', `${name} / ${random.pick(['New business', 'Expansion', 'Renewal', 'Pilot'])} ${2026 + i}`));
  }
  if (random.chance(0.6)) links.push(link('account', name));
  if (random.chance(0.4)) links.push(link('contact', call.buyers[0].name));
  if (random.chance(0.12)) links.push(link('lead', `${call.buyers[1].name} (${name})`));
  return links;
}
