/** Makes changes and audits them, also those that were made in part, or whose outcome is unknown. */
import { InvalidKeyError, KeyStateError } from '../keys/key.ts';
import type { Audit, AuditedChange } from './audit.ts';
import { AdminError, failureOf, reasonOf } from './errors.ts';

/**
 * Refusals are thrown before the first write of a change. Any other error, of whatever class, may come after it: a RangeError
 * is how the engine reports data that are nested too deep, for instance.
 */
const REFUSALS = [AdminError, KeyStateError, InvalidKeyError] as const;

const REPEAT = 'GET /api/audit has what was made. Repeat the change: what was made is not made twice.';

/**
 * A change of several parts failed after some of them were made. `made` is for the audit, `text` names them for people; the
 * cause is why the next part failed.
 */
export class PartlyMadeError extends Error {
  override readonly name = 'PartlyMadeError';
  readonly made: object;
  readonly text: string;

  constructor(made: object, text: string, cause: unknown) {
    super(`made in part: ${text}; then: ${reasonOf(cause)}`, { cause });
    this.made = made;
    this.text = text;
  }
}

export interface Change<T> extends Pick<AuditedChange, 'who' | 'action' | 'target'> {
  /** The request as it was understood, for the audit of an unknown outcome. No secret; null if `action` says it all. */
  readonly asked: object | null;
  readonly make: () => Promise<T>;
  /** For the audit, once it is made: what became of it, and what is known better by then; null if nothing is different. */
  readonly note: (made: T) => Note | null | Promise<Note>;
}
type Note = Pick<AuditedChange, 'from' | 'to'> & Partial<AuditedChange>;

/**
 * Makes the change, and audits it. If no answer comes, the audit notes what was asked and that its outcome is unknown, and
 * an AdminError 503 says so too. If the change could not be sent, or Redis is full or read-only, it was not made, and the
 * AdminError 503 says that. If a change was made in part, the audit has the parts that were made.
 */
export async function makeChange<T>(audit: Audit, { asked, make, note, ...about }: Change<T>): Promise<T> {
  const made = await make().catch(async (error: unknown) => {
    if (REFUSALS.some((refusal) => error instanceof refusal)) throw error;
    const part = error instanceof PartlyMadeError ? error : null;
    const { finding, isUnknown, advice } = failureOf(part === null ? error : part.cause);
    const failure = (outcome: string, consequence: string, remedy: string): AdminError => {
      const privateMessage = `${about.action}: ${outcome}: ${reasonOf(error)}`;
      return new AdminError(503, `${finding}, so ${consequence}. ${remedy}`, { privateMessage, cause: error });
    };
    if (part !== null) {
      const rest = isUnknown ? 'unknown' : 'not made';
      await audit.record({ ...about, from: null, to: { outcome: 'partly made', made: part.made, rest, asked } });
      throw failure('partly made', `only a part of the change was made (${part.text})`, REPEAT);
    }
    if (!isUnknown) throw failure('not made', 'the change was not made', advice);
    await audit.record({ ...about, from: null, to: { outcome: 'unknown', asked } });
    throw failure('outcome unknown', 'it is not known whether the change was made', advice);
  });
  const noted = await noteOf(note, made, asked);
  if (noted !== null) await audit.record({ ...about, ...noted });
  return made;
}

/** A change that was made is audited whatever happens. */
async function noteOf<T>(note: Change<T>['note'], made: T, asked: object | null): Promise<Note | null> {
  try {
    return await note(made);
  } catch {
    return { from: null, to: { asked } };
  }
}
