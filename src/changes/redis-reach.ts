/** Whether all processes over one Redis have applied the journal up to a position: each answers when it has. */
import { z } from 'zod';
import type { Journal, Position } from '../journal/journal.ts';
import type { RedisLink } from '../redis/connection.ts';
import type { Instances } from '../redis/instances.ts';
import { Questions } from '../redis/questions.ts';
import type { Timers } from '../time/timers.ts';
import type { Reach } from './announcements.ts';

const positionSchema = z.object({ history: z.string(), sequence: z.int().nonnegative() });

export interface RedisReachOptions {
  /** To the state Redis. */
  readonly link: RedisLink;
  readonly journal: Pick<Journal, 'position' | 'catchUp'>;
  readonly instances: Pick<Instances, 'id' | 'list'>;
  readonly timers: Timers;
}

/** Resolves when all have answered or time is over. Never rejects. */
export function redisReach({ link, journal, instances, timers }: RedisReachOptions): Reach {
  const questions = new Questions<Position, Position>({
    link,
    self: instances.id,
    timers,
    name: 'position',
    question: positionSchema,
    answer: positionSchema,
    reply: async (asked) => {
      if (!hasReached(journal.position, asked)) await journal.catchUp();
      return journal.position;
    },
  });
  return async (position, withinMs) => {
    const expected = instances
      .list()
      .filter(({ usesJournal }) => usesJournal)
      .map(({ id }) => id);
    const others = expected.filter((id) => id !== instances.id);
    if (others.length === 0) return { reached: 1, of: 1 };
    const answers = await questions.ask(position, others, withinMs);
    const reached = others.filter((id) => {
      const answer = answers.get(id);
      return answer !== undefined && hasReached(answer, position);
    });
    return { reached: reached.length + 1, of: expected.length };
  };
}

function hasReached(position: Position, asked: Position): boolean {
  return position.history === asked.history && position.sequence >= asked.sequence;
}
