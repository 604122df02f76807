/** What the cache Redis holds of a key, for operators. It only looks. */
import type { CacheNames } from '../redis/names.ts';
import type { RedisLink } from '../redis/connection.ts';
import type { FleetHolding, FleetInspector } from './explain.ts';
import { readEntry } from './redis-entry.ts';
import { FleetUnavailableError } from './redis-guard.ts';
import { FAILURE, LEASE } from './redis-leases.ts';

export interface RedisInspectorOptions {
  /** To the cache Redis. */
  readonly link: RedisLink;
  readonly names: CacheNames;
}

export class RedisInspector implements FleetInspector {
  readonly #options: RedisInspectorOptions;

  constructor(options: RedisInspectorOptions) {
    this.#options = options;
  }

  async inspect(key: string): Promise<FleetHolding> {
    const { link, names } = this.#options;
    if (!link.isUp()) throw new FleetUnavailableError('the cache Redis does not answer');
    const entry = names.of(key);
    const [[meta, body], keptMs, leaseMs, failureMs] = await link.run((client) =>
      Promise.all([
        client.hmgetBuffer(entry, 'meta', 'body'),
        client.pttl(entry),
        client.pttl(names.beside(entry, LEASE)),
        client.pttl(names.beside(entry, FAILURE)),
      ]),
    );
    const leaseLeftMs = leftOf(leaseMs);
    const hasJustFailed = leftOf(failureMs) !== null;
    if (!meta || !body) return { held: null, isBroken: false, leaseLeftMs, hasJustFailed };
    const stored = await readEntry(key, [meta, body], () => {});
    if (stored === undefined) return { held: null, isBroken: true, leaseLeftMs, hasJustFailed };
    const held = { stored, bytes: meta.length + body.length, keptForMs: leftOf(keptMs) };
    return { held, isBroken: false, leaseLeftMs, hasJustFailed };
  }
}

/** PTTL answers with a negative number for what is not there, and for what has no end. */
function leftOf(pttl: number): number | null {
  return pttl < 0 ? null : pttl;
}
