/**
 * Notices that a cache Redis of its own has gone back to an older state: a snapshot was restored, a replica that lags was
 * promoted, it was emptied, or the address leads to another server. Copies ended there since would be there again (C6: a
 * purged copy is never served again), and the journal no longer knows of it: purges of evaluations that are forgotten, and
 * copies that the store has disowned.
 *
 * The cache Redis counts what is ended, and so does the state Redis, always second: a count in the cache Redis that is behind is
 * one that went back. In a Cluster each bucket has a count, so each primary has its own. Then one event of the journal makes all
 * copies there count as purged that were fetched before it; what processes have in memory stays, since it was not lost.
 *
 * The counts are compared by the looks themselves: a look that comes more than 900 ms after the last comparison, or after the
 * connection was lost, sends one before it on the same connection. How that fails, and what bounds it:
 * - The cache Redis evicts a count: that counts as gone back, and what is cached there is fetched once more.
 * - The cache Redis goes back between two comparisons while its connections stand: old copies are served for 900 ms at most.
 * - A replica is promoted that lacks nothing but copies that were added: nothing was ended, and nothing has to be noticed.
 * - The cache Redis is lost between what ends a copy and its count, and goes back before it: that copy is there again.
 * - With one Redis for both, the counts go back together: its journal shows the loss to processes that have lived through it
 *   (journal/redis-journal.ts). If it is restored while none runs, nobody can notice.
 */
import { z } from 'zod';
import { type Journal, PROOF_HOLDS_MS } from '../../journal/journal.ts';
import type { RedisLink } from '../../redis/connection.ts';
import { endingCountKeys } from '../../redis/names.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import type { Clock } from '../../time/clock.ts';
import { SingleFlight } from '../../time/single-flight.ts';

/** KEYS: the count. Adds one to it. DEL, a first write that needs no memory, makes a full Redis run all of it. */
const ADD = defineScript(
  'addEnding',
  `
local count = (tonumber(redis.call('GET', KEYS[1]) or '') or 0) + 1
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], string.format('%.0f', count))
return count
`,
);

/** KEYS: the count. ARGV: what it is at least from now on. */
const RAISE = defineScript(
  'raiseEndings',
  `
if (tonumber(redis.call('GET', KEYS[1]) or '') or 0) >= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
return 1
`,
);

const count = z.coerce.number().int().nonnegative().catch(0);

export interface RollbackGuardOptions {
  readonly cache: Pick<RedisLink, 'run' | 'kind' | 'db' | 'onUp' | 'onChange'>;
  readonly journal: Pick<Journal, 'append' | 'on' | 'onSnapshot' | 'catchUp'>;
  /** Whether the cache is in the state Redis itself: then there is nothing to compare. */
  readonly isOne: boolean;
  readonly store: string;
  readonly clock: Pick<Clock, 'nowMicros'>;
  /** Called in the process that has noticed it, once its copies count as purged. */
  readonly onRolledBack: () => void;
}

export class RollbackGuard {
  readonly #options: RollbackGuardOptions;
  readonly #keys: readonly string[];
  readonly #stops: readonly (() => void)[];
  /** The counts as the state Redis has them; 0 for one that it has not. */
  #required: readonly number[] = [];
  #provenAtMs = Number.NEGATIVE_INFINITY;
  readonly #comparing = new SingleFlight<void>();

  constructor(options: RollbackGuardOptions) {
    const { cache, journal, isOne, store } = options;
    this.#options = options;
    this.#keys = isOne ? [] : endingCountKeys(store, cache.kind);
    const raiseRequired = ({ endings }: { readonly endings?: readonly number[] | undefined }): void => {
      this.#required = this.#keys.map((_, i) => Math.max(this.#required[i] ?? 0, endings?.[i] ?? 0));
    };
    const doubt = (): void => {
      this.#provenAtMs = Number.NEGATIVE_INFINITY;
      // One that is under way says nothing of a new connection.
      this.#comparing.forgetAll();
    };
    this.#stops = [
      journal.on('forgotten', raiseRequired),
      journal.on('moved', raiseRequired),
      // Nothing is required by a state Redis that has lost them; the copies of its old history count as purged.
      journal.onSnapshot(({ endings }) => {
        this.#required = endings;
        doubt();
      }),
      cache.onUp(doubt),
      cache.onChange(doubt),
    ];
  }

  /** Called before each look. Null if it was compared just now; else resolves once it is, or rejects if that failed. */
  prove(): Promise<void> | null {
    if (this.#keys.length === 0 || this.#nowMs() - this.#provenAtMs <= PROOF_HOLDS_MS) return null;
    return this.#comparing.join('compare', (isCurrent) => this.#compare(isCurrent));
  }

  /**
   * Called once something was ended in the cache Redis, and before that is in the journal. Returns the counts for that event.
   * Rejects if Redis does not answer.
   */
  async addEnding(): Promise<readonly number[]> {
    const { cache } = this.#options;
    const added = await Promise.all(this.#keys.map((key) => runScript(cache, ADD, { keys: [key], args: [] })));
    return added.map((reply) => count.parse(reply));
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }

  async #compare(isCurrent: () => boolean): Promise<void> {
    const { cache, journal, onRolledBack } = this.#options;
    const sentAtMs = this.#nowMs();
    const isInDoubt = this.#provenAtMs === Number.NEGATIVE_INFINITY;
    // As it is now: what is counted meanwhile may be here before the answers are.
    const required = this.#required;
    const found = await Promise.all(this.#keys.map((key) => cache.run((client) => client.get(key))));
    const isBehind = found.some((text, i) => count.parse(text ?? 0) < (required[i] ?? 0));
    if (isBehind) {
      // First, so that whoever stops here leaves it to be noticed again.
      await journal.append({ kind: 'restored' });
      const raised = this.#keys.map((key, i) => runScript(cache, RAISE, { keys: [key], args: [required[i] ?? 0] }));
      await Promise.all(raised);
      onRolledBack();
    }
    // Another process may have noticed it first, and raised the counts: its event was in the journal before.
    else if (isInDoubt) await journal.catchUp();
    if (isCurrent()) this.#provenAtMs = sentAtMs;
  }

  #nowMs(): number {
    return this.#options.clock.nowMicros() / 1000;
  }
}
