/** What operators are shown of live traffic: the what-if curves and the history, of a whole fleet where there is one. */
import { History } from './admin/stats/history.ts';
import type { Timers } from './timers.ts';
import type { TtlPolicy } from './cache/ttl-policy.ts';
import { WhatIf } from './cache/what-if/what-if.ts';
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
  if (fleet === null) return insightOf(new WhatIf({ clock, ttl: times }), new History(clock, null));
  const { link, members, store } = fleet;
  const place = { link, store, self: members.id };
  const whatIf = new WhatIf(
    { clock, ttl: times },
    { ...place, timers, peers: () => members.peers(), onBroken: warnOnce(logger) },
  );
  return insightOf(whatIf, new History(clock, { ...place, timers }));
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

/** Once each: what is wrong then goes on being so. */
function warnOnce(logger: Logger): (what: string) => void {
  const known = new Set<string>();
  return (what) => {
    if (known.has(what)) return;
    known.add(what);
    logger.warn({ what }, 'a message of the fleet cannot be read, and is left out');
  };
}
