/** What the processes of a fleet have counted of trials, in the state Redis. Each writes its own, whole, again and again. */
import { z } from 'zod';
import type { RedisLink } from '../../redis/link.ts';
import { runScript } from '../../redis/script.ts';
import { countsSchema, type TrialCounts } from './counts.ts';
import type { CountsBoard } from './figures.ts';
import { countsKey, POST_COUNTS, READ_COUNTS } from './redis-trial-scripts.ts';

export interface RedisCountsPlace {
  /** To the state Redis. It stays its owner's. */
  readonly link: Pick<RedisLink, 'client' | 'isUp'>;
  /** This process: no other has ever had this name. */
  readonly self: string;
}

/** Longer than anyone looks at a trial that is over. */
const KEPT_FOR_MS = 90 * 86_400_000;

const repliesSchema = z.array(z.array(z.string()));

export function redisCounts({ link, self }: RedisCountsPlace): CountsBoard {
  return {
    isUp: () => link.isUp(),
    post: async (id, counts) => {
      const args = [self, JSON.stringify(counts), KEPT_FOR_MS];
      await runScript(link.client, POST_COUNTS, { keys: [countsKey(id)], args });
    },
    read: async (ids) => {
      if (ids.length === 0) return [];
      const reply = await runScript(link.client, READ_COUNTS, { keys: ids.map(countsKey), args: [] });
      return repliesSchema.parse(reply).map((counted) => ofOthers(counted, self));
    },
  };
}

/** `counted`: processes and what they have counted, in turn. What is not of this form is another release's, and left out. */
function ofOthers(counted: readonly string[], self: string): readonly TrialCounts[] {
  return counted.flatMap((text, index) => {
    const isCounts = index % 2 === 1 && counted[index - 1] !== self;
    return isCounts ? readCounts(text) : [];
  });
}

function readCounts(text: string): TrialCounts[] {
  try {
    return [countsSchema.parse(JSON.parse(text))];
  } catch {
    return [];
  }
}
