/**
 * Whether the state Redis may evict what it must keep: keys, limits, the journal. Its policy can be changed while it runs, so it is
 * read again and again.
 */
import type { RedisLink } from '../redis/connection.ts';
import { evictionFault, type RedisFault, settingsOf } from '../redis/settings.ts';
import type { Timers } from '../time/timers.ts';
import { degraded, type DependencyState } from './health.ts';

const LOOK_EVERY_MS = 10_000;

export interface EvictionOptions {
  /** To the state Redis. */
  readonly link: Pick<RedisLink, 'isUp' | 'onUp' | 'servers'>;
  /** `both` if the response cache is there too. */
  readonly use: 'state' | 'both';
  readonly timers: Timers;
  readonly onChange: () => void;
}

export class Eviction {
  readonly #options: EvictionOptions;
  readonly #stopListening: () => void;
  /** Null until a server has reported its policy. */
  #policy: string | null = null;
  #fault: RedisFault | null = null;
  #cancelNext: () => void = () => undefined;

  constructor(options: EvictionOptions) {
    this.#options = options;
    this.#stopListening = options.link.onUp(() => void this.#look());
    void this.#lookOften();
  }

  /** The policy, if keys can be lost by it; else null. */
  get losesKeys(): string | null {
    return this.#fault?.severity === 'fail' ? this.#policy : null;
  }

  state(): DependencyState {
    if (this.#policy === null) return { status: 'unknown', detail: 'Redis does not report its maxmemory-policy' };
    if (this.#fault === null)
      return { status: 'ok', detail: `Redis evicts nothing (maxmemory-policy ${this.#policy})` };
    const { finding, remedy } = this.#fault;
    return degraded(`Redis ${finding}`, `Redis ${finding}. ${remedy}`);
  }

  close(): void {
    this.#stopListening();
    this.#cancelNext();
  }

  async #lookOften(): Promise<void> {
    this.#cancelNext = this.#options.timers.after(LOOK_EVERY_MS, () => void this.#lookOften());
    await this.#look();
  }

  /** Never rejects. If a Redis does not answer, or refuses INFO, its last policy holds. */
  async #look(): Promise<void> {
    const { link, use, onChange } = this.#options;
    if (!link.isUp()) return;
    const infos = await Promise.all(link.servers().map(({ client }) => client.info().catch(() => '')));
    const policies = infos.map((info) => settingsOf(info, null).evictionPolicy).filter((policy) => policy !== null);
    const faults = policies.map((policy) => ({ policy, fault: evictionFault(policy, use) }));
    // In a Cluster the primary that is set worst counts.
    const worst =
      faults.find(({ fault }) => fault?.severity === 'fail') ?? faults.find(({ fault }) => fault !== null) ?? faults[0];
    if (worst === undefined) return;
    this.#policy = worst.policy;
    this.#fault = worst.fault;
    onChange();
  }
}
