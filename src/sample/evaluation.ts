/** The records of a call: evaluation, scored scorecard and deal insights; and the rubrics of scorecards. */
import type { DealInsightsRecord, EvaluationRecord, ScorecardRecord, ScoredCardRecord } from '../domain/records.ts';
import {
  type Buyer,
  type Call,
  createFacts,
  createPerson,
  type SampleScorecard,
  type SampleWorkspace,
} from './call.ts';
import { BASE62, type Random } from './random.ts';
import { type CardTemplate, fill, type Section } from './vocabulary.ts';

const DAY_MS = 86_400_000;

/** The same record for the same call. An evaluation that is not scored yet has no scores. */
export function createEvaluation(call: Call): EvaluationRecord {
  const random = call.random('evaluation');
  const scores = call.state === 'COMPLETED' ? createSectionScores(call) : [];
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
    scorecardRef: { id: call.scorecard.id, name: call.scorecard.name },
    createdAtMs: call.createdAtMs,
    durationSeconds: call.durationSeconds,
    source: random.pick(['zoom', 'gong', 'teams', 'upload', null]),
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

/** Active, deactivated, null or absent. */
function createShare(random: Random, call: Call): Pick<EvaluationRecord, 'shareLink'> {
  const active = { id: `shr_${random.text(BASE62, 10)}`, deactivatedAtMs: null };
  const deactivated = { ...active, deactivatedAtMs: call.createdAtMs + random.int(1, 90 * DAY_MS) };
  if (call.isShowcase) return { shareLink: active };
  return random.pick([{ shareLink: active }, { shareLink: deactivated }, { shareLink: null }, {}]);
}

/** Everybody on the call or invited, and at times a colleague of the seller or someone unknown. */
function createPeople(random: Random, call: Call): EvaluationRecord['people'] {
  const guest = ({ name, email }: Buyer, spoke: boolean): EvaluationRecord['people'][number] => {
    const attended = spoke || random.chance(0.5);
    const known = random.weighted([
      [{ name, email }, 80],
      [{ name, email: null }, 11],
      [{ name: null, email }, 9],
    ]);
    return { ...known, spoke, attended };
  };
  const { name, email } = call.seller;
  const people = [
    { name, email, spoke: true, attended: true },
    ...call.buyers.map((buyer) => guest(buyer, true)),
    ...call.guests.map((buyer) => guest(buyer, false)),
  ];
  if (random.chance(0.15)) {
    const colleague = createPerson(random, call.workspace.vendor.domain);
    people.push({ name: colleague.name, email: colleague.email, spoke: random.chance(0.5), attended: true });
  }
  // Somebody who dialled in: the recorder knows neither who nor from where.
  if (random.chance(0.01)) people.push({ name: null, email: null, spoke: true, attended: true });
  return people;
}

function createCrmLinks(random: Random, call: Call): EvaluationRecord['crmLinks'] {
  type CrmLink = EvaluationRecord['crmLinks'][number];
  const { name, domain } = call.account;
  const link = (objectType: CrmLink['objectType'], label: string): CrmLink => {
    const externalId = `${random.text('0123456789', 3)}${random.text(BASE62, 12)}`;
    const href = random.chance(0.8) ? `https://crm.example/${objectType}s/${externalId}?from=${domain}` : null;
    return { objectType, externalId, label, href };
  };
  const deals = call.isShowcase ? 1 : random.pick([0, 1, 1, 1, 2]);
  const links = Array.from({ length: deals }, (_, index) =>
    link('deal', `${name} / ${random.pick(['New business', 'Expansion', 'Renewal', 'Pilot'])} ${2026 + index}`),
  );
  if (random.chance(0.6)) links.push(link('account', name));
  if (random.chance(0.4)) links.push(link('contact', call.buyers[0].name));
  if (random.chance(0.12)) links.push(link('lead', `${call.buyers[1].name} (${name})`));
  return links;
}

/** The insights agree with the call's transcript. */
export function createDealInsights(call: Call): DealInsightsRecord {
  const random = call.random('insights');
  const { facts, yearlyNet } = createFacts(call);
  const say = (text: string): string => fill(text, facts);
  return {
    evaluationId: call.id,
    workspaceId: call.workspace.id,
    permalink: `https://app.${call.workspace.vendor.domain}/evaluations/${call.id}/insights`,
    insights: {
      summary: say('{account} wants {outcome} by {month} because {pain}.'),
      stage: random.pick(['discovery', 'evaluation', 'proposal', 'negotiation', 'verbal commit']),
      amount: { value: yearlyNet, currency: 'USD', per: 'year' },
      winProbability: random.int(15, 90) / 100,
      stakeholders: [...call.buyers, ...call.guests].map(({ name, role }) => ({
        name,
        role,
        sentiment: random.pick(['positive', 'neutral', 'sceptical', null]),
      })),
      competitors: random.chance(0.7) ? [say('{rival}')] : [],
      risks: [{ kind: 'budget', note: say('{budget} in the plan against {net} offered.'), severity: random.int(1, 5) }],
      nextSteps: [{ owner: call.seller.name, action: say('Working session about {system}'), due: say('{weekday}') }],
    },
  };
}

/** The same for the evaluation and the scored card of the same call; a score is null if the model could not tell. */
function createSectionScores(call: Call): readonly { readonly section: Section; readonly score: number | null }[] {
  const random = call.random('scores');
  const level = 68 + 13 * random.gaussian();
  return call.scorecard.template.sections.map((section) => ({
    section,
    score: !call.isShowcase && random.chance(0.04) ? null : clamp(level + 9 * random.gaussian()),
  }));
}

/** 0 to 100 with one decimal. */
function clamp(score: number): number {
  return Math.round(Math.min(100, Math.max(0, score)) * 10) / 10;
}

/** The levels of a criterion, and the score from which each is reached. */
const LEVELS = [
  { label: 'Excellent', from: 85 },
  { label: 'Proficient', from: 60 },
  { label: 'Developing', from: 30 },
  { label: 'Not observed', from: 0 },
] as const;
const STRONG_FROM = 60;

/** The criteria of one call with all that is said about them, so that card and plan say the same. */
function scoreCriteria(call: Call, random: Random) {
  const { facts } = createFacts(call);
  return createSectionScores(call).flatMap(({ section, score: sectionScore }) =>
    section.criteria.map((criterion) => {
      const score = clamp((sectionScore ?? 50) + 10 * random.gaussian());
      const isStrong = score >= STRONG_FROM;
      const comment = fill(isStrong ? criterion.good : criterion.poor, facts);
      // The weakest of a good call is good too: then there is only the tip to give.
      const improvement = isStrong ? criterion.tip : comment;
      return { ...criterion, section, question: fill(section.question, facts), score, isStrong, comment, improvement };
    }),
  );
}

/** The scored card and the coaching plan that fits it: the weakest criterion is the focus, the strongest are praised. */
export function createScoredCard(call: Call): ScoredCardRecord {
  const random = call.random('scored card');
  const { name, sections, scale } = call.scorecard.template;
  const scored = scoreCriteria(call, random);
  return {
    evaluationId: call.id,
    workspaceId: call.workspace.id,
    scorecard: {
      name,
      sections: sections.map((section) => ({
        name: section.name,
        criteria: scored
          .filter((entry) => entry.section === section)
          .map(({ id, name: criterion, score, comment }) => ({
            id,
            name: criterion,
            score: publishedScore(score, scale, random),
            comment: random.chance(0.1) ? null : comment,
          })),
      })),
    },
    coachingPlan: createCoachingPlan(scored),
  };
}

function publishedScore(score: number, scale: CardTemplate['scale'], random: Random): string | number {
  if (scale === 'points') return Math.max(1, Math.round(score / 20));
  const level = LEVELS.find(({ from }) => score >= from);
  return level === undefined || random.chance(0.03) ? 'N/A' : level.label;
}

function createCoachingPlan(scored: ReturnType<typeof scoreCriteria>): ScoredCardRecord['coachingPlan'] {
  const ranked = scored.toSorted((a, b) => b.score - a.score);
  const weakest = ranked.at(-1);
  if (weakest === undefined) throw new RangeError('a scorecard has at least one criterion');
  const { name, description, section, question, tip, improvement } = weakest;
  const twoWeakest = ranked.slice(-2).toReversed();
  return {
    focusArea: {
      biggestImprovementOpportunity: `${name}. ${improvement}`,
      recommendation: `Work on ${section.name.toLowerCase()} next. ${description}`,
      tryThis: tip,
      questionSuggestions: [question],
    },
    // After a weak call the list of strengths may be short, or empty.
    strengths: ranked
      .slice(0, 2)
      .filter(({ isStrong }) => isStrong)
      .map((entry) => ({ name: entry.name, comment: entry.comment })),
    areasForImprovement: twoWeakest.map((entry) => ({ name: entry.name, comment: entry.improvement })),
  };
}

/** The rubric of a card: what each criterion means, and what each level of it looks like. */
export function createRubric({ id: workspaceId }: SampleWorkspace, card: SampleScorecard): ScorecardRecord {
  const { sections, scale } = card.template;
  return {
    _id: card.id,
    workspaceId,
    name: card.name,
    rubric: {
      scale: { kind: scale, minimum: 0, maximum: 100, passMark: STRONG_FROM },
      sections: sections.map((section) => ({
        key: section.key,
        name: section.name,
        criteria: section.criteria.map(({ id, name, description, tip }) => ({
          id,
          name,
          description,
          guidance: tip,
          levels: LEVELS,
        })),
      })),
    },
  };
}
