/** Questions that every worker answers for itself, with an end that comes whether or not all of them do. */
import type { WorkerProcess } from './worker-process.ts';

export interface Gathered {
  readonly answers: readonly { readonly worker: number; readonly value: unknown }[];
  /** Workers that are there and did not answer in time. */
  readonly silent: readonly number[];
}

/** Calls `run` once after that time, unless the returned function is called first. */
export interface Timers {
  after(delayMs: number, run: () => void): () => void;
}

const ANSWER_TIMEOUT_MS = 1000;

interface Question {
  readonly waiting: Set<number>;
  readonly answers: { readonly worker: number; readonly value: unknown }[];
  readonly finish: () => void;
}

export class Gathering {
  readonly #timers: Timers;
  readonly #questions = new Map<number, Question>();
  #lastId = 0;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** Resolves as soon as all of them have answered or are gone, and after a second at the latest. */
  ask(workers: readonly Pick<WorkerProcess, 'id' | 'send'>[], topic: string): Promise<Gathered> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve) => {
      const waiting = new Set(workers.map((worker) => worker.id));
      const answers: Question['answers'] = [];
      const finish = (): void => {
        cancel();
        this.#questions.delete(id);
        resolve({ answers, silent: [...waiting] });
      };
      const cancel = this.#timers.after(ANSWER_TIMEOUT_MS, finish);
      this.#questions.set(id, { waiting, answers, finish });
      for (const worker of workers) worker.send({ kind: 'question', id, topic });
      if (waiting.size === 0) finish();
    });
  }

  answered(worker: number, id: number, value: unknown): void {
    const question = this.#questions.get(id);
    if (question === undefined || !question.waiting.delete(worker)) return;
    question.answers.push({ worker, value });
    if (question.waiting.size === 0) question.finish();
  }

  /** Nobody waits for a worker that has ended. */
  ended(worker: number): void {
    for (const question of this.#questions.values()) {
      if (question.waiting.delete(worker) && question.waiting.size === 0) question.finish();
    }
  }
}
