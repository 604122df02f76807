/** Why a body is read as it is: the shape that won, what speaks for it, and the runner-up. */
import type { TranscriptFormat } from '../domain/vocabulary.ts';
import type { ShapeCount } from './evidence.ts';
import { bodyOf } from './form.ts';
import { parseSlices } from './parse.ts';
import type { Slices } from './slices.ts';
import { judgeLines } from './spoken-lines.ts';
import type { ParsedTranscript } from './turn-writer.ts';
import type { Verdict } from './verdict.ts';

export interface Explanation {
  readonly parsed: ParsedTranscript;
  /** The evidence of the lines for the shape; null if no lines were counted, as for JSON, cues and columns. */
  readonly evidence: Evidence | null;
  /** The next best shape of lines; null if there is none. */
  readonly runnerUp: (Evidence & { readonly shape: string; readonly refusal: string | null }) | null;
}

/** The counts of the first lines. */
export interface Evidence {
  readonly turns: number;
  readonly names: number;
  /** Turns of names that occur more than once. */
  readonly recurring: number;
  readonly times: number;
  /** How many times go back. */
  readonly backs: number;
}

/** Reads a body as `parseSlices` does, and says why. */
export function* explainSlices(body: string, declared: TranscriptFormat | null): Slices<Explanation> {
  const parsed = yield* parseSlices(body, declared);
  const verdicts = parsed.form === 'json' ? [] : yield* judgeLines(yield* bodyOf(parsed.body, declared));
  const isWinner = ({ shape }: Verdict): boolean => parsed.form === 'spoken lines' && shape.sequence === parsed.shape;
  const won = verdicts.find(isWinner);
  const second = verdicts.find((verdict) => !isWinner(verdict));
  return {
    parsed,
    evidence: won === undefined ? null : evidenceOf(won.shape),
    runnerUp:
      second === undefined
        ? null
        : { shape: second.shape.sequence, refusal: second.refusal, ...evidenceOf(second.shape) },
  };
}

function evidenceOf({ turns, names, recurring, times, backs }: ShapeCount): Evidence {
  return { turns, names: names.size, recurring: recurring.turns, times, backs };
}
