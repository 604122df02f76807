/** The sample's world: workspaces, their people and scorecards, and calls, from which all records are made. */
import type { EvaluationState } from '../domain/records.ts';
import { EVALUATION_STATES, type TranscriptFormat } from '../domain/vocabulary.ts';
import { BASE62, Random } from './random.ts';
import { ACCOUNTS, CARD_TEMPLATES, FALLBACK_CARD, FAMILY_NAMES, GIVEN_NAMES, VENDORS, WORDS } from './vocabulary.ts';
import type { CardTemplate, Facts } from './vocabulary.ts';

export type SampleWorkspace = ReturnType<typeof createWorkspaces>[number];
export type SampleScorecard = SampleWorkspace['scorecards'][number];
export type Call = ReturnType<typeof createCall>;
export type Buyer = Call['buyers'][number];

/** Makes the four workspaces of a seed, always the same ones whatever the number of evaluations. */
export function createWorkspaces(seed: number) {
  return VENDORS.map((vendor) => {
    const random = new Random(seed, 'workspace', vendor.domain);
    return {
      id: random.uuid(),
      vendor,
      sellers: Array.from({ length: random.int(8, 14) }, () => createSeller(random, vendor.domain)),
      managerId: `usr_${random.text(BASE62, 14)}`,
      scorecards: createScorecards(random),
    };
  });
}

/** Makes somebody at the company that owns `domain`. */
export function createPerson(random: Random, domain: string) {
  const [givenName, givenAddress] = random.pick(GIVEN_NAMES);
  const [familyName, familyAddress] = random.pick(FAMILY_NAMES);
  return { name: `${givenName} ${familyName}`, givenName, email: `${givenAddress}.${familyAddress}@${domain}` };
}

/** Makes someone who sells, and whose calls are evaluated. The interface allows that some members are absent. */
function createSeller(random: Random, domain: string) {
  const userId = `usr_${random.text(BASE62, 14)}`;
  const url = `https://avatars.${domain}/${userId}.png`;
  return {
    ...createPerson(random, domain),
    userId,
    publishesUserId: random.chance(0.85),
    ...random.pick([{ avatar: url }, { avatar: url }, { avatar: null }, {}]),
  };
}

/**
 * New ids are UUIDs; the last current card still has an id of the old form. One more card is retired: its rubric is gone,
 * though older evaluations still refer to it.
 */
function createScorecards(random: Random) {
  const current = CARD_TEMPLATES.map((template: CardTemplate, index) => ({
    id: index === CARD_TEMPLATES.length - 1 ? `sc_${random.text(BASE62, 12)}` : random.uuid(),
    name: template.name,
    template,
    retired: false,
  }));
  const [template] = CARD_TEMPLATES;
  return [...current, { id: random.uuid(), name: `${template.name} (2024)`, template, retired: true }];
}

const CALL_KINDS = ['Discovery call', 'Product demo', 'Negotiation', 'Follow-up', 'Pilot review'] as const;

/** How the transcript is written down, apart from what is said. */
export interface TranscriptShape {
  /** The real form of the body; `minutes` is prose, which is none of the supported formats. */
  readonly written: TranscriptFormat | 'minutes' | 'empty' | 'huge';
  /** The format that the store says it has. */
  readonly declared: TranscriptFormat | null;
  readonly crlf: boolean;
  /** Whether it holds what broken recorders leave, and scripts other than Latin. */
  readonly isOdd: boolean;
  readonly turnCount: number;
}

/** Common to all calls of a sample. */
export interface CallContext {
  readonly seed: number;
  readonly workspaces: readonly SampleWorkspace[];
  /** The mean time between two calls. */
  readonly gapMs: number;
}

/** About when the newest call begins. */
const NEWEST_MS = Date.UTC(2026, 10, 16, 8);
/** The formats of the first calls, which are examples: whole in every part, so that each endpoint has something to show. */
const SHOWCASES: readonly TranscriptFormat[] = ['speaker_text', 'webvtt'];
/** Every so often a call begins in the same millisecond as the one before it, so that the order by id shows. */
const TIE_EVERY = 61;

/** Makes the call number `index`, from 0, newest first but for some hours of chance. */
export function createCall(context: CallContext, index: number) {
  const { seed, gapMs } = context;
  /** Made plain and whole, for the ready-made example requests. */
  const isShowcase = index < SHOWCASES.length;
  const random = new Random(seed, 'call', index);
  const twin = index % TIE_EVERY === TIE_EVERY - 1 ? index - 1 : index;
  const workspace = workspaceOf(context, twin);
  const jitterMs = new Random(seed, 'time of', twin).int(0, Math.round(4 * gapMs));
  const [name, domainName] = random.pick(ACCOUNTS);
  const account = { name, domain: `${domainName}.example` };
  const transcript = createTranscriptShape(random, SHOWCASES[index] ?? null);
  const id = `ev_${random.text(BASE62, 18)}`;
  const unfinished = EVALUATION_STATES.filter((state) => state !== 'COMPLETED');
  const state: EvaluationState = isShowcase || random.chance(0.88) ? 'COMPLETED' : random.pick(unfinished);
  const buyer = () => ({ ...createPerson(random, account.domain), role: random.pick(WORDS.roles) });
  return {
    id,
    workspace,
    account,
    transcript,
    isShowcase,
    createdAtMs: NEWEST_MS - Math.round(twin * gapMs) - jitterMs,
    state,
    durationSeconds: isShowcase || random.chance(0.95) ? durationSecondsOf(random, transcript.turnCount) : null,
    kind: random.pick(CALL_KINDS),
    seller: random.pick(workspace.sellers),
    /** These two are heard in the transcript. */
    buyers: [buyer(), buyer()] as const,
    /** They were only invited. */
    guests: Array.from({ length: random.int(0, 3) }, buyer),
    scorecard: chooseScorecard(random, workspace, isShowcase),
    hasInsights: isShowcase || random.chance(0.97),
    /** The randomness of one part of the call, which is the same whenever the part is made. */
    random: (part: string) => new Random(seed, part, id),
  };
}

/** Workspaces are of very different size: 40, 30, 20 and 10 percent of the calls. */
function workspaceOf({ seed, workspaces }: CallContext, index: number): SampleWorkspace {
  const [largest] = workspaces;
  if (index < SHOWCASES.length && largest !== undefined) return largest;
  const weighted = workspaces.map((workspace, at) => [workspace, workspaces.length - at] as const);
  return new Random(seed, 'workspace of', index).weighted(weighted);
}

/** That of a call that was scored without one. */
const NO_SCORECARD = { id: null, name: FALLBACK_CARD.name, template: FALLBACK_CARD };

/** A showcase has a scorecard with a rubric and a UUID, by which both public surfaces can filter. */
function chooseScorecard(random: Random, { scorecards }: SampleWorkspace, isShowcase: boolean) {
  if (isShowcase) return random.pick(scorecards.filter(({ id, retired }) => !retired && !id.startsWith('sc_')));
  return random.chance(0.04) ? NO_SCORECARD : random.pick(scorecards);
}

/** Recorders give whole seconds or fractions of them; people take some eleven seconds a turn. */
function durationSecondsOf(random: Random, turnCount: number): number {
  const seconds = turnCount * (8 + 6 * random.next());
  return random.chance(0.7) ? Math.round(seconds) : Math.round(seconds * 1000) / 1000;
}

/** Most stores know the format of most bodies. A showcase is in a format with speakers. */
function createTranscriptShape(random: Random, showcase: TranscriptFormat | null): TranscriptShape {
  if (showcase !== null) {
    return { written: showcase, declared: showcase, crlf: false, isOdd: false, turnCount: random.int(80, 120) };
  }
  const written = random.weighted<Exclude<TranscriptShape['written'], 'huge'>>([
    ['speaker_text', 34],
    ['webvtt', 24],
    ['srt', 15],
    ['utterances_json', 17],
    ['minutes', 7],
    ['empty', 3],
  ]);
  return {
    written,
    declared: written === 'empty' || written === 'minutes' || random.chance(0.18) ? null : written,
    crlf: random.chance(0.12),
    isOdd: random.chance(0.1),
    turnCount: Math.round(Math.min(400, Math.max(20, 90 * Math.exp(0.65 * random.gaussian())))),
  };
}

/** Makes what a call is about: names and figures on which its transcript, scorecard and insights agree. */
export function createFacts(call: Call): { facts: Facts; yearlyNet: number } {
  const random = call.random('facts');
  const { vendor } = call.workspace;
  const [buyer, colleague] = call.buyers;
  const seats = random.int(3, 40) * 10;
  const discountPercent = random.int(2, 8) * 2.5;
  const yearlyTotal = seats * vendor.unitPrice * 12;
  const yearlyNet = Math.round(yearlyTotal * (1 - discountPercent / 100));
  const facts = {
    seller: call.seller.givenName,
    buyer: buyer.givenName,
    colleague: colleague.givenName,
    account: call.account.name,
    product: vendor.product,
    module: random.pick(WORDS.modules),
    unit: vendor.unit,
    system: random.pick(WORDS.systems),
    rival: random.pick(WORDS.rivals),
    tool: random.pick(WORDS.tools),
    pain: random.pick(WORDS.pains),
    outcome: random.pick(WORDS.outcomes),
    seats: thousands(seats),
    price: `$${vendor.unitPrice}`,
    total: `$${thousands(yearlyTotal)}`,
    discount: String(discountPercent),
    net: `$${thousands(yearlyNet)}`,
    budget: `$${thousands(Math.round(yearlyNet / 1250) * 1000)}`,
    cost: String(random.int(18, 48)),
    month: random.pick(WORDS.months),
    weekday: random.pick(WORDS.weekdays),
    time: random.pick(WORDS.times),
  };
  return { facts, yearlyNet };
}

function thousands(amount: number): string {
  return amount.toLocaleString('en-US');
}
