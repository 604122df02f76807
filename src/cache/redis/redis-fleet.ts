/** Asks all processes over one Redis what they hold, each on the channel that all listen to; the answers come on one of its own. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { RedisLink } from '../../redis/connection.ts';
import type { Instances } from '../../redis/instances.ts';
import { channelName } from '../../redis/names.ts';
import { type Timers, withDeadline } from '../../time/timers.ts';
import { type Erasure, erasureSchema, type Fleet, type Holding, holdingSchema } from '../erase.ts';
import { parseJson } from './entry-format.ts';

const questionSchema = erasureSchema.extend({ channel: z.string() });
const answerSchema = holdingSchema.extend({ id: z.string() });

export interface RedisFleetOptions {
  /** To the state Redis. */
  readonly link: RedisLink;
  readonly instances: Pick<Instances, 'id' | 'known'>;
  readonly timers: Timers;
  /** This process's answer. If it rejects, there is none. */
  readonly answer: (question: Erasure) => Promise<Holding>;
}

export class RedisFleet implements Fleet {
  readonly #options: RedisFleetOptions;
  readonly #channel: string;

  /** Answers from now on. */
  constructor(options: RedisFleetOptions) {
    const { link } = options;
    this.#options = options;
    this.#channel = channelName('erase', String(link.db));
    link.subscriber.listen(this.#channel, (text) => void this.#answer(text));
  }

  known(gone: readonly string[]): Promise<readonly string[]> {
    return this.#options.instances.known(gone);
  }

  /** Never rejects: without Redis nobody answers. */
  async ask(question: Erasure, expected: readonly string[], withinMs: number): Promise<ReadonlyMap<string, Holding>> {
    const { link, timers } = this.#options;
    const channel = channelName('erase', randomUUID());
    const answers = new Map<string, Holding>();
    const { promise: allAnswered, resolve } = Promise.withResolvers<void>();
    const onAnswer = (text: string): void => {
      const answer = parseJson(answerSchema, text);
      if (answer !== null) answers.set(answer.id, answer);
      if (expected.every((id) => answers.has(id))) resolve();
    };
    try {
      const end = await link.subscriber.subscribe(channel, onAnswer);
      await link.run((client) => client.publish(this.#channel, JSON.stringify({ ...question, channel })));
      await withDeadline(allAnswered, withinMs, timers, () => undefined);
      end();
    } catch {
      // A process that has not answered counts as not reached.
    }
    return answers;
  }

  async #answer(text: string): Promise<void> {
    const { link, instances, answer } = this.#options;
    const question = parseJson(questionSchema, text);
    if (question === null) return;
    try {
      const holding = await answer(question);
      await link.run((client) => client.publish(question.channel, JSON.stringify({ id: instances.id, ...holding })));
    } catch {
      // The one that asks waits in vain, and reports this process as not reached.
    }
  }
}
