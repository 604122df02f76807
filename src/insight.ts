/** What operators are shown of live traffic: the what-if curves and the history, of a whole fleet where there is one. */
import { createHistory, type History } from './admin/history.ts';
import { createRedisHistory } from './admin/redis-history.ts';
import type { Timers } from './timers.ts';
import type { TtlPolicy } from './cache/ttl-policy.ts';
import { WhatIfModel } from './cache/what-if/model.ts';
import type { ExchangeHooks } from './cache/what-if/exchange.ts';
import { redisBoard, redisMessages } from './cache/what-if/redis-what-if.ts';
import { fleetWhatIf, localWhatIf, type WhatIf } from './cache/what-if/what-if.ts';
import type { Clock } from './clock.ts';
import type { Logger } from './log/logger.ts';
import type { RedisLink } from './redis/connection.ts';
import type { Instances } from './redis/instances.ts';

export interface Insight {
  readonly whatIf: WhatIf;
  readonly history: History;
  close(): Promise<void>;
}

export interface InsightParts {
  readonly times: Pick<TtlPolicy, 'of'>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
}

/** What a fleet has in common. It stays its owner's to close. */
export interface InsightFleet {
  /** To the state Redis. */
  readonly link: RedisLink;
  readonly members: Instances;
  /** Names the store: members in front of another one are not asked. */
  readonly store: string;
}

/** Without a fleet this process sees all that there is. */
export function openInsight(parts: InsightParts, fleet: InsightFleet | null): Insight {
  const { clock, timers, logger, times } = parts;
  const model = new WhatIfModel({ clock, times });
  if (fleet === null) return insightOf(localWhatIf({ model, clock }), createHistory(clock));
  const { link, members, store } = fleet;
  const place = { link, store, self: members.id };
  const whatIf = fleetWhatIf(
    { model, clock },
    {
      self: members.id,
      peers: () => members.peers(),
      messages: redisMessages(place),
      board: redisBoard(place),
      timers,
      hooks: logged(logger),
    },
  );
  return insightOf(whatIf, createRedisHistory({ ...place, clock, timers }));
}

function insightOf(whatIf: WhatIf, history: History): Insight {
  return {
    whatIf,
    history,
    close: async () => {
      whatIf.close();
      await history.close();
    },
  };
}

/** Each once: what is wrong then goes on being so. */
function logged(logger: Logger): ExchangeHooks {
  const told = new Set<string>();
  const once = (what: string, tell: () => void): void => {
    if (told.has(what)) return;
    told.add(what);
    tell();
  };
  return {
    onBroken: (what) =>
      once(what, () => logger.warn({ what }, 'a message of the fleet cannot be read, and is left out')),
  };
}
