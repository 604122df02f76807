/** Reads the store for the doctor, as the gateway does, but as little load as can be: a few calls at a time, each timed. */
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { formatDuration } from '../../time/duration.ts';
import { systemClock } from '../../time/clock.ts';
import { systemTimers } from '../../time/timers.ts';
import { AnswerMemory } from '../../upstream/answer-memory.ts';
import { StoreClient } from '../../upstream/client.ts';
import { StoreError } from '../../upstream/store-error.ts';
import { checksNamed, type Finding } from './check.ts';
import type { ReadStore } from './store-records.ts';

const MAX_AT_A_TIME = 4;
/** The objective is of 99 of 100 calls, and the doctor makes some fifty: this share of them may be slow by chance. */
const CHANCE = 0.1;

const upstream = checksNamed('upstream');
const contract = checksNamed('contract');

export class StoreReader {
  readonly #client: StoreClient;
  /** The last call of each lane. A lane sends its calls one after another. */
  readonly #lanes: Promise<unknown>[];
  readonly #intervalMs: number;
  #calls = 0;
  #nextMs = 0;
  #isClosed = false;
  readonly #tookMs: number[] = [];
  readonly #etags = new Map<string, Answers>();

  constructor(settings: Config['upstream'] & { readonly url: string }) {
    const { url, maxConnections, maxRequestsPerSecond, maxResponseBytes } = settings;
    const lanes = Math.min(MAX_AT_A_TIME, maxConnections);
    this.#lanes = Array.from({ length: lanes }, () => Promise.resolve());
    this.#intervalMs = maxRequestsPerSecond === null ? 0 : 1000 / maxRequestsPerSecond;
    this.#client = new StoreClient({
      ...settings,
      baseUrl: url,
      maxConnections: lanes,
      memory: new AnswerMemory(lanes * maxResponseBytes, { clock: systemClock, timers: systemTimers }),
      hooks: { onCall: ({ durationMs }) => this.#tookMs.push(durationMs) },
    });
  }

  readonly read: ReadStore = async (resource, params, etag) => {
    const validator = etag === undefined ? {} : { ifNoneMatch: etag };
    const answer = await this.#inLane(() =>
      this.#client.fetch(resource, params, { requestId: randomUUID(), ...validator }),
    );
    if (answer.kind === 'found' && answer.etag !== null) {
      const { hashes, isOfList } = this.#etags.get(answer.etag) ?? { hashes: new Set<string>(), isOfList: false };
      hashes.add(createHash('sha256').update(JSON.stringify(answer.record)).digest('base64url'));
      this.#etags.set(answer.etag, { hashes, isOfList: isOfList || resource.name === 'list' });
    }
    return answer;
  };

  /** Ends the calls under way; those that wait are not sent. */
  close(): void {
    this.#isClosed = true;
    this.#client.close();
  }

  /** ETags that different answers share. A record may have its version for an ETag; a list has none. */
  etagFindings(): readonly Finding[] {
    const kept = 'An ETag must change with the body; if it does not, the gateway keeps the old body.';
    return [...this.#etags]
      .filter(([, { hashes }]) => hashes.size > 1)
      .map(([etag, { hashes, isOfList }]) => {
        const seen = `${hashes.size} have ${etag}`;
        return isOfList
          ? contract.fail('different answers have the same ETag', `${kept} Have the store corrected.`, seen)
          : contract.warn(
              'different records have the same ETag',
              `${kept} Nothing is wrong if it is the version of each single record.`,
              seen,
            );
      });
  }

  /** Whether calls took longer than the reads that wait for them may. */
  speedFindings(missP99Ms: number): readonly Finding[] {
    return speedFindings(this.#tookMs, missP99Ms);
  }

  async #inLane<T>(call: () => Promise<T>): Promise<T> {
    const lane = this.#calls % this.#lanes.length;
    this.#calls += 1;
    const before = this.#lanes[lane];
    const run = async (): Promise<T> => {
      await before;
      if (this.#isClosed) throw new StoreError('aborted', 'the check was given up');
      const nowMs = performance.now();
      const startMs = Math.max(nowMs, this.#nextMs);
      this.#nextMs = startMs + this.#intervalMs;
      if (startMs > nowMs) await setTimeout(startMs - nowMs);
      return await call();
    };
    const result = run();
    this.#lanes[lane] = result.catch(() => undefined);
    return await result;
  }
}

/** Whether calls that took so long are slower than the reads that wait for them may be. */
export function speedFindings(tookMs: readonly number[], missP99Ms: number): readonly Finding[] {
  const took = tookMs.toSorted((a, b) => a - b);
  const slow = took.filter((ms) => ms > missP99Ms).length;
  if (slow === 0) return [];
  const [median = 0, slowest = 0] = [took[Math.floor(took.length / 2)], took.at(-1)];
  const found = `${slow} of ${took.length} calls took longer than objectives.missP99 (${formatDuration(missP99Ms)}): the median is ${seconds(median)}, the slowest ${seconds(slowest)}`;
  if (slow <= took.length * CHANCE) return [upstream.ok(`${found}; of so few calls, chance makes some slow`)];
  return [
    upstream.warn(
      found,
      'Readers wait as long for what has no copy. See what slows the store down, or set objectives.missP99 to what consumers were promised.',
    ),
  ];
}

/** The different answers that had one ETag. */
interface Answers {
  readonly hashes: Set<string>;
  readonly isOfList: boolean;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 0)} s`;
}
