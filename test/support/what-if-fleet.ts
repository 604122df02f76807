/** What-if models of several processes and their wire, inside one test process, and traffic for them. */
import { hash32 } from '../../src/cache/hash.ts';
import type { ReadReport } from '../../src/cache/hooks.ts';
import { AdjustableTimes } from '../../src/cache/times.ts';
import { adviceOf, type ClassAdvice } from '../../src/cache/what-if/advice.ts';
import { WhatIfModel } from '../../src/cache/what-if/model.ts';
import { fleetWhatIf, localWhatIf, type WhatIf } from '../../src/cache/what-if/what-if.ts';
import { OUTDATED_LIMITS } from './insight.ts';
import type { ManualTimers } from './manual-timers.ts';
import { SeededRandom } from './random.ts';
import { WhatIfWire } from './what-if-wire.ts';

export function aRead(key: string): ReadReport {
  const served = { outcome: 'hit', tier: 'memory', missReason: null, ageMs: 1, durationMs: 0.1 } as const;
  return { class: 'list', key, keyHash: hash32(key), ...served };
}

/** Where everything arrives at once. Who has gone is gone from `ids`. */
export class WhatIfProcesses {
  readonly wire = new WhatIfWire();
  readonly times = new AdjustableTimes();
  readonly members = new Map<string, WhatIf>();
  readonly #timers: ManualTimers;

  constructor(timers: ManualTimers) {
    this.#timers = timers;
  }

  join(self: string): WhatIf {
    const { clock } = this.#timers;
    const member = fleetWhatIf(
      { model: new WhatIfModel({ clock, times: this.times }), clock },
      {
        self,
        peers: () => [...this.members.keys()].toSorted(),
        messages: this.wire.messages(self),
        board: this.wire.boardOf(self),
        timers: this.#timers,
      },
    );
    this.members.set(self, member);
    return member;
  }

  /** One process that makes all reads itself. */
  alone(): WhatIf {
    const { clock } = this.#timers;
    return localWhatIf({ model: new WhatIfModel({ clock, times: this.times }), clock });
  }

  /** What a process says of lists. */
  async adviceAt(whatIf: WhatIf): Promise<ClassAdvice> {
    const snapshots = (await whatIf.reports()).map(({ snapshot }) => snapshot);
    const options = { times: this.times, outdatedLimits: OUTDATED_LIMITS, nowMs: this.#timers.clock.nowMs() };
    const list = adviceOf(snapshots, options).find((advice) => advice.class === 'list');
    if (list === undefined) throw new Error('There is no advice for lists.');
    return list;
  }
}

/** Keys by Zipf's law: the n-th is read 1/n as often as the first. */
export class ZipfKeys {
  readonly #cumulative: Float64Array;
  readonly #random: SeededRandom;

  constructor(keys: number, seed: number) {
    this.#random = new SeededRandom(seed);
    this.#cumulative = new Float64Array(keys);
    let sum = 0;
    for (let index = 0; index < keys; index += 1) this.#cumulative[index] = sum += 1 / (index + 1);
  }

  next(): string {
    const at = this.#random.next() * (this.#cumulative.at(-1) ?? 0);
    let [low, high] = [0, this.#cumulative.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#cumulative[middle] ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return `v1:{list:${low}}`;
  }
}
