/** Changes of the sample's records, as people and re-processing make them: drawn by a seed, one at a time. */
import { Random } from './random.ts';
import { isJsonObject, type JsonObject, type StoreRecords } from './routes.ts';

/** A change as the store announces it. */
export interface SampleEdit {
  readonly evaluation: string;
  readonly workspace: string;
  readonly kinds?: readonly ('evaluation' | 'transcript' | 'scorecard')[];
  readonly deleted?: true;
}

/** How often records change. */
export interface EditRates {
  readonly editsPerSecond: number;
  readonly deletionsPerSecond: number;
}

export class SampleEdits {
  readonly #records: StoreRecords;
  readonly #random: Random;
  /** The completed evaluations that are left. */
  readonly #ids: string[];
  #count = 0;

  constructor(records: StoreRecords, seed: number) {
    this.#records = records;
    this.#random = new Random(seed, 'edits');
    this.#ids = [...records.evaluations.keys()].filter((id) => this.#completed(id) !== null);
  }

  /** Changes records at these rates. Returns a function that ends it. */
  begin({ editsPerSecond, deletionsPerSecond }: EditRates, onEdit: (edit: SampleEdit) => void): () => void {
    const every = (perSecond: number, make: () => SampleEdit | null): NodeJS.Timeout | undefined => {
      if (perSecond === 0) return undefined;
      return setInterval(() => {
        const made = make();
        if (made !== null) onEdit(made);
      }, 1000 / perSecond);
    };
    const timers = [every(editsPerSecond, () => this.edit()), every(deletionsPerSecond, () => this.delete())];
    return () => timers.forEach((timer) => clearInterval(timer));
  }

  /** Changes a call, its transcript or its scorecard; null if there is none left. */
  edit(): SampleEdit | null {
    const found = this.#pick();
    if (found === null) return null;
    const { id, record } = found;
    this.#count += 1;
    const kind = this.#random.pick(['evaluation', 'transcript', 'scorecard'] as const);
    if (kind === 'evaluation') {
      const overallScore = this.#random.int(0, 1000) / 10;
      this.#records.evaluations.set(id, { ...record, overallScore, title: titleOf(record, this.#count) });
    } else if (kind === 'transcript') {
      const transcript = objectOf(this.#records.transcripts.get(id));
      const before = typeof transcript['body'] === 'string' ? transcript['body'] : '';
      const body = `${before}\n\nReviewed ${this.#count} times.`;
      this.#records.transcripts.set(id, { ...transcript, body });
    } else {
      const card = objectOf(this.#records.scoredCards.get(id));
      const strengths = [{ name: 'Preparation', comment: `Reviewed ${this.#count} times.` }];
      const coachingPlan = { ...objectOf(card['coachingPlan']), strengths };
      this.#records.scoredCards.set(id, { ...card, coachingPlan });
    }
    return { evaluation: id, workspace: workspaceOf(record), kinds: [kind] };
  }

  /** Removes a call with its parts; null if there is none left. */
  delete(): SampleEdit | null {
    const found = this.#pick();
    if (found === null) return null;
    const { id, record, at } = found;
    this.#ids.splice(at, 1);
    const { evaluations, transcripts, scoredCards, dealInsights } = this.#records;
    for (const table of [evaluations, transcripts, scoredCards, dealInsights]) table.delete(id);
    return { evaluation: id, workspace: workspaceOf(record), deleted: true };
  }

  #pick(): { readonly id: string; readonly record: JsonObject; readonly at: number } | null {
    if (this.#ids.length === 0) return null;
    const at = this.#random.int(0, this.#ids.length - 1);
    const id = this.#ids[at] ?? '';
    const record = this.#completed(id);
    return record === null ? null : { id, record, at };
  }

  /** Null for an evaluation that is broken or not completed. */
  #completed(id: string): JsonObject | null {
    const record = this.#records.evaluations.get(id);
    const isWhole = isJsonObject(record) && record['state'] === 'COMPLETED' && typeof record['title'] === 'string';
    return isWhole && workspaceOf(record) !== '' ? record : null;
  }
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function workspaceOf({ workspaceId }: JsonObject): string {
  return typeof workspaceId === 'string' ? workspaceId : '';
}

/** The title with the number of its last edit. */
function titleOf({ title }: JsonObject, count: number): string {
  return `${String(title).replace(/ \(edit \d+\)$/, '')} (edit ${count})`;
}
