/** The sample's world that doesn't change from call to call: workspaces, the people who sell, and their scorecards. */
import { BASE62, createRandom, randomUuid } from './random.ts';
import type { Random } from './random.ts';
import { VENDORS } from './vocabulary/business.ts';
import type { Vendor } from './vocabulary/business.ts';
import { CARD_TEMPLATES } from './vocabulary/cards.ts';
import type { CardTemplate } from './vocabulary/cards.ts';
import { FAMILY_NAMES, GIVEN_NAMES } from './vocabulary/people.ts';

export interface Person {
  readonly name: string;
  readonly givenName: string;
  readonly email: string;
}
/** Someone who sells, and whose calls are evaluated. The optional members are absent for some, as the interface allows. */
export interface Seller extends Person {
  readonly userId: string;
  readonly publishesUserId: boolean;
  readonly avatar?: string | null;
}
export interface SampleScorecard {
  readonly id: string;
  readonly name: string;
  readonly template: CardTemplate;
  /** The rubric is gone, though older evaluations still refer to it. */
  readonly retired: boolean;
}
export interface SampleWorkspace {
  readonly id: string;
  readonly vendor: Vendor;
  readonly sellers: readonly Seller[];
  readonly managerId: string;
  readonly scorecards: readonly SampleScorecard[];
}

/** The four workspaces of a seed, always the same ones whatever the number of evaluations. */
export function createWorkspaces(seed: number): readonly SampleWorkspace[] {
  return VENDORS.map((vendor) => {
    const random = createRandom(seed, 'workspace', vendor.domain);
    return {
      id: randomUuid(random),
      vendor,
      sellers: Array.from({ length: random.int(8, 14) }, () => createSeller(random, vendor.domain)),
      managerId: `usr_${random.text(BASE62, 14)}`,
      scorecards: createScorecards(random),
    };
  });
}

/** Somebody at the company that owns `domain`. */
export function createPerson(random: Random, domain: string): Person {
  const [givenName, givenAddress] = random.pick(GIVEN_NAMES);
  const [familyName, familyAddress] = random.pick(FAMILY_NAMES);
  return { name: `${givenName} ${familyName}`, givenName, email: `${givenAddress}.${familyAddress}@${domain}` };
}

function createSeller(random: Random, domain: string): Seller {
  const userId = `usr_${random.text(BASE62, 14)}`;
  const url = `https://avatars.${domain}/${userId}.png`;
  return {
    ...createPerson(random, domain),
    userId,
    publishesUserId: random.chance(0.85),
    ...random.pick([{ avatar: url }, { avatar: url }, { avatar: null }, {}]),
  };
}

function createScorecards(random: Random): readonly SampleScorecard[] {
  const current = CARD_TEMPLATES.map((template, index) => ({
    // The newest kind of id is a UUID; one card still has an id of the old form.
    id: index === CARD_TEMPLATES.length - 1 ? `sc_${random.text(BASE62, 12)}` : randomUuid(random),
    name: template.name,
    template,
    retired: false,
  }));
  const [first] = CARD_TEMPLATES;
  if (first === undefined) return current;
  return [...current, { id: randomUuid(random), name: `${first.name} (2024)`, template: first, retired: true }];
}
