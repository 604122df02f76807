/** What is said in a call of the sample, turn by turn. */
import type { Call, CallKind } from './call.ts';
import type { Random } from './random.ts';
import { BACKCHANNEL, DIALOGUE, EMOJI, type Exchange, ODD_CHARACTERS, RIGHT_TO_LEFT } from './vocabulary/dialogue.ts';
import { fill } from './vocabulary/grammar.ts';
import type { Facts } from './vocabulary/grammar.ts';

export interface SpokenTurn {
  readonly speaker: string;
  readonly text: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** The parts between opening and closing, in their order. */
const PARTS = ['discovery', 'demo', 'objections', 'pricing'] as const;
/** How much of the time each part takes. */
type Shares = Readonly<Record<(typeof PARTS)[number], number>>;
const BALANCED: Shares = { discovery: 0.38, demo: 0.24, objections: 0.22, pricing: 0.16 };
const SHARES: Readonly<Record<CallKind, Shares>> = {
  'Discovery call': { discovery: 0.62, demo: 0.12, objections: 0.16, pricing: 0.1 },
  'Product demo': { discovery: 0.2, demo: 0.5, objections: 0.2, pricing: 0.1 },
  Negotiation: { discovery: 0.12, demo: 0.1, objections: 0.38, pricing: 0.4 },
  'Follow-up': BALANCED,
  'Pilot review': BALANCED,
};
/** A long call goes over the ground again, so many turns at a time. */
const TURNS_A_ROUND = 130;
/** Below it there is no time for the whole opening and closing. */
const SHORT_TURNS = 60;
const SPECIALS = { plain: [], emoji: EMOJI, rightToLeft: RIGHT_TO_LEFT, oddCharacters: ODD_CHARACTERS } as const;
const MS_PER_CHARACTER = 62;

/** Exactly as many turns as the call's shape says, ending with a goodbye. */
export function converse(call: Call, facts: Facts, random: Random): readonly SpokenTurn[] {
  const { turnCount, flavour } = call.transcript;
  const isShort = turnCount < SHORT_TURNS;
  const opening = (isShort ? DIALOGUE.opening.slice(0, 1) : DIALOGUE.opening).flat();
  const closing = (isShort ? DIALOGUE.closing.slice(-1) : DIALOGUE.closing).flat();
  const plan = { shares: SHARES[call.kind], specials: SPECIALS[flavour] };
  const body = createBody(turnCount - opening.length - closing.length, plan, random);
  const spoken = [...opening, ...body, ...closing].map((line) => ({
    speaker: speakerOf(line, call),
    text: fill(line.slice(2), facts, random),
  }));
  return timed(spoken, call.durationSeconds);
}

interface BodyPlan {
  readonly shares: Shares;
  readonly specials: Exchange;
}

/** So many lines of whole exchanges, the parts of a call in their order; what is left over are short answers. */
function createBody(budget: number, { shares, specials }: BodyPlan, random: Random): readonly string[] {
  const decks = PARTS.map((part) => ({ share: shares[part], deal: createDeck(DIALOGUE[part], random) }));
  const asides = [...BACKCHANNEL, ...specials, ...specials];
  const rounds = Math.ceil(budget / TURNS_A_ROUND);
  const lines: string[] = [];
  let due = 0;
  for (let round = 0; round < rounds; round += 1) {
    for (const { share, deal } of decks) {
      due += (budget / rounds) * share;
      while (lines.length < Math.floor(due)) {
        const next = random.chance(0.14) ? [random.pick(asides)] : deal();
        lines.push(...(lines.length + next.length > budget ? [random.pick(BACKCHANNEL)] : next));
      }
    }
  }
  // The shares add up to the budget but for the last bit of a float.
  while (lines.length < budget) lines.push(random.pick(BACKCHANNEL));
  return lines;
}

/** Deals every exchange once before any comes again. */
function createDeck(exchanges: readonly Exchange[], random: Random): () => Exchange {
  let left: Exchange[] = [];
  return () => {
    if (left.length === 0) left = random.shuffled(exchanges);
    return left.pop() ?? [];
  };
}

function speakerOf(line: string, call: Call): string {
  if (line.startsWith('S')) return call.seller.name;
  return call.buyers[line.startsWith('B') ? 0 : 1].name;
}

/** Gives every turn the time that its length takes, stretched so that the last one ends with the recording. */
function timed(
  spoken: readonly { readonly speaker: string; readonly text: string }[],
  durationSeconds: number | null,
): readonly SpokenTurn[] {
  const naturalMs = spoken.reduce((sum, { text }) => sum + 400 + text.length * MS_PER_CHARACTER, 0);
  const stretch = durationSeconds === null ? 1 : (durationSeconds * 1000) / naturalMs;
  let atMs = 0;
  return spoken.map(({ speaker, text }) => {
    const startMs = atMs;
    atMs += (400 + text.length * MS_PER_CHARACTER) * stretch;
    return { speaker, text, startMs: Math.round(startMs), endMs: Math.round(atMs - 200 * stretch) };
  });
}
