/** Made-up sales calls: as many turns as wanted, the same for the same seed. */
import { SeededRandom } from './random.ts';
import type { SpokenTurn } from './transcript-render.ts';

const SPEAKERS = ['Dana Whitfield', 'Marco Ruiz', 'Priya N.', 'Søren Østergård', 'Chloé', 'Account Executive 2'];
const OPENERS = ['So,', 'Right.', 'Honestly,', 'Okay, quick one:', 'Let me think.', 'Yeah —', 'Mm-hmm.', 'To be fair,'];
const MIDDLES = [
  'the pilot ran longer than we planned',
  'procurement wants a second quote before the end of the quarter',
  'our reps spend about 40% of the week on notes',
  'the café team in Montréal already signed off',
  'I would rather see the rollout in two phases',
  'the dashboard didn’t load on Tuesday & nobody told us',
  'what matters to legal is where the recordings are kept',
  'we compared three vendors <and yours was the second cheapest>',
  'my manager asked the same thing yesterday',
];
const CLOSERS = ['.', '?', ', does that make sense?', ', I guess.', '… anyway.', ' 🙂', '!', ', to be honest.'];

/** Turns of a call that have at least `minUnits` UTF-16 units of words in all. */
export function salesCall(minUnits: number, seed = 1): SpokenTurn[] {
  const random = new SeededRandom(seed);
  const pick = (from: readonly string[]): string => from[random.integer(0, from.length - 1)] ?? '';
  const turns: SpokenTurn[] = [];
  for (let units = 0; units < minUnits;) {
    const sentences = Array.from({ length: random.integer(1, 4) }, () => {
      return `${pick(OPENERS)} ${pick(MIDDLES)}${pick(CLOSERS)}`;
    });
    const turn = { speaker: pick(SPEAKERS), text: random.next() < 0.03 ? '' : sentences.join(' ') };
    turns.push(turn);
    units += turn.text.length;
  }
  return turns;
}
