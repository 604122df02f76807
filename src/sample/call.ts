/** One call of the sample: everything that its evaluation, transcript, scorecard and insights are made from. */
import { EVALUATION_STATES } from '../domain/records.ts';
import type { EvaluationState, TranscriptFormat } from '../domain/records.ts';
import { BASE62, createRandom } from './random.ts';
import type { Random } from './random.ts';
import { ACCOUNTS } from './vocabulary/business.ts';
import { BUYER_ROLES } from './vocabulary/people.ts';
import { createPerson } from './world.ts';
import type { Person, SampleScorecard, SampleWorkspace, Seller } from './world.ts';

/** What a call is mainly for; its title begins with it. */
export const CALL_KINDS = ['Discovery call', 'Product demo', 'Negotiation', 'Follow-up', 'Pilot review'] as const;
export type CallKind = (typeof CALL_KINDS)[number];

export interface Buyer extends Person {
  readonly role: string;
}
/** How the transcript is written down, apart from what is said. */
export interface TranscriptShape {
  /** What the body really is; `minutes` is prose, which is none of the supported formats. */
  readonly written: TranscriptFormat | 'minutes' | 'empty' | 'huge';
  /** What the store says that it is. */
  readonly declared: TranscriptFormat | null;
  readonly crlf: boolean;
  readonly flavour: 'plain' | 'emoji' | 'rightToLeft' | 'oddCharacters';
  readonly turnCount: number;
}
export interface Call {
  readonly id: string;
  readonly workspace: SampleWorkspace;
  readonly state: EvaluationState;
  readonly createdAtMs: number;
  readonly durationSeconds: number | null;
  readonly kind: CallKind;
  readonly seller: Seller;
  readonly account: { readonly name: string; readonly domain: string };
  /** At least two; not all of them speak. */
  readonly buyers: readonly [Buyer, Buyer, ...Buyer[]];
  readonly scorecard: SampleScorecard | null;
  readonly transcript: TranscriptShape;
  readonly hasInsights: boolean;
  /** Made plain and whole, for the ready-made example requests. */
  readonly isShowcase: boolean;
}

/** What all calls of a sample have in common. */
export interface CallContext {
  readonly seed: number;
  readonly nowMs: number;
  readonly workspaces: readonly SampleWorkspace[];
  /** The mean time between two calls. */
  readonly gapMs: number;
}

const HOUR_MS = 3_600_000;
/** The first calls are examples: whole in every part, so that each endpoint has something to show. */
const SHOWCASES = 2;
/** What a store may say of a body with nothing in it. */
const EMPTY_DECLARED = ['speaker_text', 'webvtt', null] as const;
/** Every so often a call begins in the same millisecond as the one before it, so that the order by id shows. */
const TIE_EVERY = 61;

/** The call number `index`, from 0, newest first but for some hours of chance. */
export function createCall(context: CallContext, index: number): Call {
  const isShowcase = index < SHOWCASES;
  const random = createRandom(context.seed, 'call', index);
  const twin = index % TIE_EVERY === TIE_EVERY - 1 ? index - 1 : index;
  const workspace = workspaceOf(context, twin);
  const [name, domainName] = random.pick(ACCOUNTS);
  const domain = `${domainName}.example`;
  const buyer = (): Buyer => ({ ...createPerson(random, domain), role: random.pick(BUYER_ROLES) });
  const transcript = isShowcase ? showcaseTranscript(random, index) : createTranscriptShape(random);
  return {
    id: `ev_${random.text(BASE62, 18)}`,
    workspace,
    state: isShowcase || random.chance(0.88) ? 'COMPLETED' : unfinishedState(random),
    createdAtMs: createdAtMsOf(context, twin),
    durationSeconds: isShowcase || random.chance(0.95) ? durationSecondsOf(random, transcript.turnCount) : null,
    kind: random.pick(CALL_KINDS),
    seller: random.pick(workspace.sellers),
    account: { name, domain },
    buyers: [buyer(), buyer(), ...Array.from({ length: random.int(0, 3) }, buyer)],
    scorecard: isShowcase ? random.pick(currentCards(workspace)) : createCardChoice(random, workspace),
    transcript,
    hasInsights: isShowcase || random.chance(0.97),
    isShowcase,
  };
}

/** Scorecards whose rubric exists and whose id is a UUID, which both public surfaces can filter by. */
function currentCards(workspace: SampleWorkspace): readonly SampleScorecard[] {
  return workspace.scorecards.filter(({ id, retired }) => !retired && !id.startsWith('sc_'));
}

/** Workspaces are of very different size: 40, 30, 20 and 10 percent of the calls. */
function workspaceOf({ seed, workspaces }: CallContext, index: number): SampleWorkspace {
  const [largest] = workspaces;
  if (index < SHOWCASES && largest !== undefined) return largest;
  const weighted = workspaces.map((workspace, at) => [workspace, workspaces.length - at] as const);
  return createRandom(seed, 'workspace of', index).weighted(weighted);
}

function createdAtMsOf({ seed, nowMs, gapMs }: CallContext, index: number): number {
  const jitterMs = createRandom(seed, 'time of', index).int(0, Math.round(4 * gapMs));
  return nowMs - HOUR_MS - Math.round(index * gapMs) - jitterMs;
}

function unfinishedState(random: Random): EvaluationState {
  return random.pick(EVALUATION_STATES.filter((state) => state !== 'COMPLETED'));
}

function createCardChoice(random: Random, workspace: SampleWorkspace): SampleScorecard | null {
  return random.chance(0.04) ? null : random.pick(workspace.scorecards);
}

/** Recorders give whole seconds or fractions of them; people take some eleven seconds a turn. */
function durationSecondsOf(random: Random, turnCount: number): number {
  const seconds = turnCount * (8 + 6 * random.next());
  return random.chance(0.7) ? Math.round(seconds) : Math.round(seconds * 1000) / 1000;
}

function createTranscriptShape(random: Random): TranscriptShape {
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
    declared: declareFormat(random, written),
    crlf: random.chance(0.12),
    flavour: random.weighted([
      ['plain', 85],
      ['emoji', 6],
      ['rightToLeft', 5],
      ['oddCharacters', 4],
    ]),
    turnCount: Math.round(Math.min(400, Math.max(20, 90 * Math.exp(0.65 * random.gaussian())))),
  };
}

/** Most stores know the format of most bodies. */
function declareFormat(random: Random, written: TranscriptShape['written']): TranscriptFormat | null {
  if (written === 'empty') return random.pick(EMPTY_DECLARED);
  if (written === 'minutes' || written === 'huge') return null;
  return random.chance(0.82) ? written : null;
}

function showcaseTranscript(random: Random, index: number): TranscriptShape {
  const format = index === 0 ? 'speaker_text' : 'webvtt';
  return { written: format, declared: format, crlf: false, flavour: 'plain', turnCount: random.int(80, 120) };
}
