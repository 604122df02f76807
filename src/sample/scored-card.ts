/** Scores, scored scorecards with their coaching plans, and rubrics. */
import type { ScoredCardRecord, ScorecardRecord } from '../domain/records.ts';
import type { Call } from './call.ts';
import { createFacts } from './facts.ts';
import { createRandom } from './random.ts';
import type { Random } from './random.ts';
import { CARD_TEMPLATES } from './vocabulary/cards.ts';
import type { CardTemplate } from './vocabulary/cards.ts';
import type { Criterion, Section } from './vocabulary/criteria.ts';
import { fill } from './vocabulary/grammar.ts';
import type { SampleScorecard, SampleWorkspace } from './world.ts';

type PublishedScore = string | number;

/** A section's score, 0 to 100; null where the model could not tell. */
export interface SectionScore {
  readonly section: Section;
  readonly score: number | null;
}

const FALLBACK_CARD: CardTemplate = {
  name: 'Ad-hoc review',
  sections: CARD_TEMPLATES[0]?.sections ?? [],
  scale: 'words',
};
/** The levels of a criterion, and the score from which each is reached. */
const LEVELS = [
  { label: 'Excellent', from: 85 },
  { label: 'Proficient', from: 60 },
  { label: 'Developing', from: 30 },
  { label: 'Not observed', from: 0 },
] as const;
const STRONG_FROM = 60;

/** A criterion of one call with all that is said about it, so that card and plan say the same. */
interface ScoredCriterion {
  readonly criterion: Criterion;
  readonly section: Section;
  readonly score: number;
  readonly comment: string;
  readonly tip: string;
}

/** The card that a call was scored by; one that was scored without a card got the ad-hoc one. */
export function templateOf(call: Call): CardTemplate {
  return call.scorecard?.template ?? FALLBACK_CARD;
}

/** The same for the evaluation and the scored card of the same call. */
export function createSectionScores(seed: number, call: Call): readonly SectionScore[] {
  const random = createRandom(seed, 'scores', call.id);
  const level = 68 + 13 * random.gaussian();
  return templateOf(call).sections.map((section) => ({
    section,
    score: !call.isShowcase && random.chance(0.04) ? null : clamp(level + 9 * random.gaussian()),
  }));
}

/** The scored card and the coaching plan that fits it: the weakest criterion is the focus, the strongest are praised. */
export function createScoredCard(seed: number, call: Call): ScoredCardRecord {
  const random = createRandom(seed, 'scored card', call.id);
  const { facts } = createFacts(seed, call);
  const say = (text: string): string => fill(text, facts, random);
  const template = templateOf(call);
  const scored = createSectionScores(seed, call).flatMap(({ section, score }) =>
    section.criteria.map((criterion) => scoreCriterion({ section, criterion, sectionScore: score }, say, random)),
  );
  return {
    evaluationId: call.id,
    workspaceId: call.workspace.id,
    scorecard: {
      name: template.name,
      sections: template.sections.map((section) => ({
        name: section.name,
        criteria: scored
          .filter((entry) => entry.section === section)
          .map(({ criterion: { id, name }, score, comment }) => ({
            id,
            name,
            score: publishedScore(score, template.scale, random),
            comment: random.chance(0.1) ? null : comment,
          })),
      })),
    },
    coachingPlan: createCoachingPlan(scored, say),
  };
}

function scoreCriterion(
  what: { readonly section: Section; readonly criterion: Criterion; readonly sectionScore: number | null },
  say: (text: string) => string,
  random: Random,
): ScoredCriterion {
  const { section, criterion, sectionScore } = what;
  const score = clamp((sectionScore ?? 50) + 10 * random.gaussian());
  return {
    section,
    criterion,
    score,
    comment: say(score >= STRONG_FROM ? criterion.good : criterion.poor),
    tip: say(criterion.tip),
  };
}

function createCoachingPlan(
  scored: readonly ScoredCriterion[],
  say: (text: string) => string,
): ScoredCardRecord['coachingPlan'] {
  const ranked = scored.toSorted((a, b) => b.score - a.score);
  const weakest = ranked.at(-1);
  if (weakest === undefined) throw new RangeError('a scorecard has at least one criterion');
  const toImprove = ({ score, comment, tip }: ScoredCriterion): string =>
    score >= STRONG_FROM ? `Solid already. To go further, ${tip.charAt(0).toLowerCase()}${tip.slice(1)}` : comment;
  return {
    focusArea: {
      biggestImprovementOpportunity: `${weakest.criterion.name}. ${toImprove(weakest)}`,
      recommendation: `Work on ${weakest.section.name.toLowerCase()} next. ${weakest.criterion.description}`,
      tryThis: weakest.tip,
      questionSuggestions: weakest.section.questions.map(say),
    },
    // After a weak call the list of strengths may be short, or empty.
    strengths: ranked
      .filter(({ score }) => score >= STRONG_FROM)
      .slice(0, 2)
      .map(({ criterion, comment }) => ({ name: criterion.name, comment })),
    areasForImprovement: ranked
      .slice(-2)
      .toReversed()
      .map((entry) => ({ name: entry.criterion.name, comment: toImprove(entry) })),
  };
}

/** The rubric of a card: what each criterion means, and what each level of it looks like. */
export function createRubric(workspace: SampleWorkspace, card: SampleScorecard): ScorecardRecord {
  const { sections, scale } = card.template;
  return {
    _id: card.id,
    workspaceId: workspace.id,
    name: card.name,
    rubric: {
      version: 3,
      language: 'en',
      scale: { kind: scale, minimum: 0, maximum: 100, passMark: STRONG_FROM },
      sections: sections.map((section) => ({
        key: section.key,
        name: section.name,
        weight: Math.round(1000 / sections.length) / 1000,
        criteria: section.criteria.map(({ id, name, description, tip }) => ({
          id,
          name,
          description,
          guidance: tip,
          levels: LEVELS.map((level) => ({ ...level, notes: level.from === 0 ? null : description })),
        })),
      })),
    },
  };
}

function publishedScore(score: number, scale: CardTemplate['scale'], random: Random): PublishedScore {
  const points = Math.max(1, Math.round(score / 20));
  const level = LEVELS.find(({ from }) => score >= from)?.label ?? 'N/A';
  const word = random.chance(0.03) ? 'N/A' : level;
  return { points, fraction: `${points}/5`, words: word, percent: score }[scale];
}

/** 0 to 100 with one decimal. */
function clamp(score: number): number {
  return Math.round(Math.min(100, Math.max(0, score)) * 10) / 10;
}
