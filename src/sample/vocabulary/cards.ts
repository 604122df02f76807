/** The scorecards that every workspace of the sample has. */
import { EARLY_SECTIONS } from './criteria.ts';
import type { Section } from './criteria.ts';
import { LATE_SECTIONS } from './criteria-late.ts';

/** What a scorecard is called, what they ask, and how a criterion is scored. */
export interface CardTemplate {
  readonly name: string;
  readonly sections: readonly Section[];
  readonly scale: 'points' | 'fraction' | 'words' | 'percent';
}

export const CARD_TEMPLATES: readonly CardTemplate[] = [
  {
    name: 'Discovery Call Excellence',
    sections: [EARLY_SECTIONS.opening, EARLY_SECTIONS.discovery, EARLY_SECTIONS.qualification, LATE_SECTIONS.nextSteps],
    scale: 'points',
  },
  {
    name: 'Demo Delivery',
    sections: [EARLY_SECTIONS.opening, EARLY_SECTIONS.value, LATE_SECTIONS.nextSteps],
    scale: 'fraction',
  },
  {
    name: 'MEDDICC Qualification',
    sections: [EARLY_SECTIONS.discovery, EARLY_SECTIONS.qualification, LATE_SECTIONS.objections],
    scale: 'words',
  },
  {
    name: 'Negotiation & Close',
    sections: [LATE_SECTIONS.objections, LATE_SECTIONS.pricing, LATE_SECTIONS.nextSteps],
    scale: 'percent',
  },
  {
    name: 'Full-Cycle Sales Call',
    sections: [
      EARLY_SECTIONS.opening,
      EARLY_SECTIONS.discovery,
      EARLY_SECTIONS.value,
      LATE_SECTIONS.objections,
      LATE_SECTIONS.pricing,
      LATE_SECTIONS.nextSteps,
    ],
    scale: 'points',
  },
];
