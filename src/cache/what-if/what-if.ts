/**
 * What the hit ratio and the store's load would be with other times, as a process of a fleet knows it. Cached answers
 * serve all of a fleet, so a model has to see all reads of the keys that it follows, whoever made them.
 */
import type { Timers } from '../../timers.ts';
import type { Listener } from '../../telemetry/events.ts';
import { type ExchangeHooks, ReadExchange } from './exchange.ts';
import { WhatIfFeed, type WhatIfParts, type WhatIfReport } from './feed.ts';
import type { Board, Messages } from './ports.ts';
import { Reports } from './reports.ts';

export interface WhatIf {
  /** To be told of all that the cache of this process does. Never throws and never waits. */
  readonly hooks: Listener;
  /** Of this process and, as far as they can be had, of all others in front of the same store. Never rejects. */
  reports(): Promise<readonly WhatIfReport[]>;
  close(): void;
}

/** How the model of a process reaches those of the others. */
export interface WhatIfFleet {
  /** This process. */
  readonly self: string;
  /** The processes in front of the same store, this one among them, in order. */
  readonly peers: () => readonly string[];
  readonly messages: Messages;
  readonly board: Board;
  readonly timers: Timers;
  readonly hooks?: ExchangeHooks;
}

/** Of one process of a fleet: its model follows its share of the keys. */
export function fleetWhatIf(parts: WhatIfParts, fleet: WhatIfFleet): WhatIf {
  const exchange = new ReadExchange({ ...parts, ...fleet });
  const feed = new WhatIfFeed(parts, (...read) => exchange.add(...read));
  const reports = new Reports({ ...fleet, report: () => feed.report(), onBroken: fleet.hooks?.onBroken });
  return {
    hooks: feed.hooks,
    reports: () => reports.all(),
    close: () => {
      exchange.close();
      reports.close();
    },
  };
}

/** Of a gateway that is alone. */
export function localWhatIf(parts: WhatIfParts): WhatIf {
  const feed = new WhatIfFeed(parts, (...read) => parts.model.read(...read));
  return { hooks: feed.hooks, reports: async () => [feed.report()], close: () => {} };
}
