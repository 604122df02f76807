/** Settings of the response cache: its memory, and for each class of answers three times and how much of it may be out of date. */
import { z } from 'zod';
import { duration, optional, share, size } from './kinds.ts';
import { DAY, setting } from './setting.ts';

function cacheTimes(name: string, what: string, times: readonly [fresh: string, stale: string, error: string]) {
  const time = (suffix: string, initial: string, does: string): z.ZodType<number> =>
    setting(duration(0, 365 * DAY), { env: `CACHE_${name}_${suffix}`, initial, does });
  const [fresh, stale, error] = times;
  return z.strictObject({
    fresh: time('FRESH', fresh, `How long ${what} is served as it is. Longer spares the store; changes show up later.`),
    stale: time(
      'STALE',
      stale,
      `How long past its freshness ${what} is still served at once while one refresh runs behind. Longer means fewer waits.`,
    ),
    error: time(
      'ERROR',
      error,
      `How long past its freshness ${what} is served when the store fails. Longer rides out longer outages.`,
    ),
    outdatedLimit: setting(share(), {
      env: null,
      initial: '2%',
      does: `Share of answers that may be out of date with the time that is recommended for ${what}. Lower where that hurts more than load on the store; it changes the recommendation alone.`,
    }),
  });
}

export const cacheSettings = z.strictObject({
  memory: setting(size(0, 1_000_000_000_000), {
    env: null,
    initial: '64MB',
    does: 'Memory that a process gives to cached records and their rendered forms. More where the hit ratio is low and memory is free.',
  }),
  redisBytes: setting(optional(size(0, 1_000_000_000_000_000)), {
    env: null,
    initial: null,
    does: 'Redis memory that the cache may fill, by an estimate; above it new answers are kept in memory only. Set it where keys and limits share a Redis without maxmemory. With maxmemory the cache leaves a tenth of that free there in any case.',
  }),
  classes: z.strictObject({
    list: cacheTimes('LIST', 'a list page', ['30s', '5m', '1h']),
    evaluation: cacheTimes('EVALUATION', 'a report or call', ['5m', '1h', '24h']),
    transcript: cacheTimes('TRANSCRIPT', 'a transcript', ['1h', '24h', '7d']),
    scorecard: cacheTimes('SCORECARD', 'a scored scorecard', ['15m', '1h', '24h']),
    rubric: cacheTimes('RUBRIC', 'a rubric', ['10m', '1h', '24h']),
    dealInsights: cacheTimes('DEAL_INSIGHTS', 'deal insights', ['5m', '1h', '24h']),
    notFound: cacheTimes('NOT_FOUND', "the store's word that there is no such thing", ['15s', '0s', '0s']),
  }),
});
