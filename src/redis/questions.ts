/**
 * Questions to all processes over one Redis: each is sent on a channel that all listen to, and the answers come on one of its
 * own. A message may be lost, so who asks counts the answers.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Timers, withDeadline } from '../time/timers.ts';
import type { RedisLink } from './connection.ts';
import { channelName } from './names.ts';

const addressSchema = z.object({ channel: z.string() });
const senderSchema = z.object({ id: z.string() });

export interface QuestionsOptions<Q, A> {
  /** To the state Redis. */
  readonly link: RedisLink;
  /** The id of this process. */
  readonly self: string;
  readonly timers: Timers;
  /** Tells these questions from others. */
  readonly name: string;
  readonly question: z.ZodType<Q>;
  readonly answer: z.ZodType<A>;
  /** This process's answer. If it rejects, there is none. */
  readonly reply: (question: Q) => Promise<A>;
}

export class Questions<Q extends object, A extends object> {
  readonly #options: QuestionsOptions<Q, A>;
  readonly #channel: string;

  /** Answers from now on. */
  constructor(options: QuestionsOptions<Q, A>) {
    const { link, name } = options;
    this.#options = options;
    this.#channel = channelName(name, String(link.db));
    link.subscriber.listen(this.#channel, (text) => void this.#answer(text));
  }

  /**
   * Asks all; resolves with the answers by process, when all `expected` have answered or time is over. Never rejects: without
   * Redis nobody answers.
   */
  async ask(question: Q, expected: readonly string[], withinMs: number): Promise<ReadonlyMap<string, A>> {
    const { link, timers, name, answer: schema } = this.#options;
    const channel = channelName(name, randomUUID());
    const answers = new Map<string, A>();
    const { promise: allAnswered, resolve } = Promise.withResolvers<void>();
    const onAnswer = (text: string): void => {
      const value = parsed(text);
      const sender = senderSchema.safeParse(value).data;
      const answer = schema.safeParse(value).data;
      if (sender !== undefined && answer !== undefined) answers.set(sender.id, answer);
      if (expected.every((id) => answers.has(id))) resolve();
    };
    let end: (() => void) | null = null;
    try {
      end = await link.subscriber.subscribe(channel, onAnswer);
      await link.run((client) => client.publish(this.#channel, JSON.stringify({ ...question, channel })));
      await withDeadline(allAnswered, withinMs, timers, () => undefined);
    } catch {
      // A process that has not answered counts as not reached.
    } finally {
      end?.();
    }
    return answers;
  }

  async #answer(text: string): Promise<void> {
    const { link, self, question: schema, reply } = this.#options;
    const value = parsed(text);
    const address = addressSchema.safeParse(value).data;
    const question = schema.safeParse(value).data;
    if (address === undefined || question === undefined) return;
    try {
      const answer = await reply(question);
      await link.run((client) => client.publish(address.channel, JSON.stringify({ id: self, ...answer })));
    } catch {
      // The one that asks waits in vain, and reports this process as not reached.
    }
  }
}

/** Null for what is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
