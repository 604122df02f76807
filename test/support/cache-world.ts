/**
 * Gateways in front of one store, with one clock: a single one that keeps everything in memory, or two over one Redis.
 * A suite that reads `here` and `there` holds for both.
 *
 *     const world = await CacheWorld.start('redis');
 *     const reader = await world.reader(GET_CALL);
 *     expect(await reader.ask(world.here)).toMatchObject({ status: 200 });
 *     ... await world.close();
 */
import assert from 'node:assert/strict';
import { expect, vi } from 'vitest';
import { z } from 'zod';
import { type EndpointRow, GET_RUBRIC } from '../http/common/endpoints.ts';
import { keyFor, newSubject, putSubject, type Subject } from '../http/common/subject.ts';
import { type Reply, startTestGateway, TEST_CONFIG, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { systemTimers, type Timers } from '../../src/time/timers.ts';
import { ManualClock } from './manual-clock.ts';
import { connectToAny, namesIn, type TestClient } from './redis/client.ts';
import { startRedis, type TestRedis } from './redis.ts';
import { aScorecard } from './records.ts';
import { createStoreServer, type SeenRequest, sendJson, type StoreServer } from './store-server.ts';

export const BACKENDS = ['memory', 'redis'] as const;
export type BackendKind = (typeof BACKENDS)[number];

/** How long a change may take to reach the other gateway unless the test names a time, with room for a busy machine. */
const WITHIN_MS = 10_000;

const entrySchema = z.looseObject({ state: z.string(), ageMs: z.number(), ttlMs: z.number(), bytes: z.number() });
const explainedSchema = z.looseObject({
  key: z.string(),
  next: z.object({
    text: z.string(),
    from: z.string().nullable(),
    store: z.string(),
    miss: z.string().nullable(),
  }),
  memory: entrySchema.nullable(),
  redis: z.object({ state: z.string(), entry: entrySchema.nullable() }),
  flight: z.object({ since: z.string().nullable(), leaseLeftMs: z.number().nullable(), justFailed: z.boolean() }),
  evicted: z.boolean(),
});
export type Explained = z.output<typeof explainedSchema>;

/** The cache outcome of a reply. */
export interface Seen {
  readonly status: number;
  readonly cache: string;
  readonly age: string | undefined;
  readonly text: string;
}

export interface Reader {
  readonly subject: Subject;
  readonly path: string;
  readonly key: string;
  readonly ask: (gateway?: TestGateway) => Promise<Seen>;
  readonly explain: (gateway?: TestGateway) => Promise<Explained>;
  /** The store's calls for this record since the reader was made. */
  readonly calls: () => number;
}

export interface WorldOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Settings beside those that all test gateways have, as YAML. */
  readonly settings?: string;
  /** Where the first gateway finds Redis, if not at its address. */
  readonly redisUrlHere?: (url: string) => Promise<string>;
  readonly timers?: Timers;
}

interface Shared extends TestGatewayOptions {
  readonly store: StoreServer;
  readonly clock: ManualClock;
}

export class CacheWorld {
  readonly kind: BackendKind;
  readonly store: StoreServer;
  readonly clock: ManualClock;
  readonly redis: TestRedis | null;
  readonly gateways: TestGateway[] = [];
  readonly #shared: Shared;
  readonly #knownLines = new Set<string>();
  #raw: TestClient | null = null;
  #witness: Reader | null = null;

  private constructor(kind: BackendKind, redis: TestRedis | null, shared: Shared) {
    this.kind = kind;
    this.redis = redis;
    this.store = shared.store;
    this.clock = shared.clock;
    this.#shared = shared;
  }

  static async start(kind: BackendKind, options: WorldOptions = {}): Promise<CacheWorld> {
    const { env = {}, settings = '', redisUrlHere, timers = systemTimers } = options;
    const store = await createStoreServer();
    const redis = kind === 'redis' ? await startRedis() : null;
    const config = TEST_CONFIG + settings;
    const world = new CacheWorld(kind, redis, { env, config, timers, store, clock: new ManualClock() });
    if (redis === null) await world.add();
    else {
      await world.add({ REDIS_URL: (await redisUrlHere?.(redis.url)) ?? redis.url });
      await world.add();
    }
    return world;
  }

  /** One more gateway in front of the same store. */
  async add(env: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
    const own = { ...(this.redis && { REDIS_URL: this.redis.url }), ...this.#shared.env, ...env };
    const gateway = await startTestGateway({ ...this.#shared, env: own });
    this.gateways.push(gateway);
    return gateway;
  }

  get here(): TestGateway {
    return this.#gateway(0);
  }

  /** The other gateway; the same one if there is no Redis. */
  get there(): TestGateway {
    return this.#gateway(1);
  }

  async raw(): Promise<TestClient> {
    if (this.redis === null) throw new Error('There is no Redis.');
    this.#raw ??= await connectToAny(this.redis.url, 5000);
    return this.#raw;
  }

  async names(pattern: string): Promise<readonly string[]> {
    return namesIn(await this.raw(), pattern);
  }

  /** A reader of a record of its own, which is in the store unless the test says otherwise. */
  async reader(endpoint: EndpointRow, options: { readonly isStored?: boolean } = {}): Promise<Reader> {
    const subject = options.isStored === false ? newSubject() : putSubject(this.store);
    return this.readerOf(endpoint, subject);
  }

  async readerOf(endpoint: EndpointRow, subject: Subject): Promise<Reader> {
    const key = await keyFor(this.here, subject);
    const path = endpoint.path(subject);
    const isAsked = ({ resource, id, query }: SeenRequest): boolean => {
      if (resource !== endpoint.resource) return false;
      return id === null ? query.has('workspaceId', subject.workspaceId) : Object.values(subject).includes(id);
    };
    const calls = (): number => this.store.requests.filter(isAsked).length;
    const before = calls();
    return {
      subject,
      path,
      key,
      ask: async (gateway = this.here) => seenOf(await gateway.get(path, { key })),
      explain: (gateway = this.here) => this.explain(path, gateway, [subject.workspaceId]),
      calls: () => calls() - before,
    };
  }

  /** A gateway's explanation of the cache behind a path, for readers of those workspaces. */
  async explain(
    path: string,
    gateway: TestGateway = this.here,
    workspaceIds: readonly string[] = [],
  ): Promise<Explained> {
    const viewer = path.startsWith('/v1') ? '' : workspaceIds.map((id) => `&workspace=${id}`).join('');
    const reply = await gateway.admin('GET', `/api/cache/explain?path=${encodeURIComponent(path)}${viewer}`);
    assert.equal(reply.status, 200, reply.text);
    return explainedSchema.parse(reply.json);
  }

  /** Changes something through the admin listener, and resolves once that is in force. */
  async change(method: string, path: string, body?: unknown, gateway: TestGateway = this.here): Promise<Reply> {
    const reply = await gateway.admin(method, path, body);
    assert.equal(reply.status, 200, reply.text);
    return reply;
  }

  /** Sets times of a class and resolves once they are in force at every gateway. */
  async setTimes(cacheClass: string, times: Readonly<Record<string, string>>): Promise<void> {
    await this.change('PUT', `/api/cache/ttl/${cacheClass}`, times);
    await this.#untilSameTimes();
  }

  async resetTimes(cacheClass: string): Promise<void> {
    await this.change('DELETE', `/api/cache/ttl/${cacheClass}`);
    await this.#untilSameTimes();
  }

  async purge(tags: readonly string[], options: object = {}, at: TestGateway = this.here): Promise<Reply> {
    const witness = await this.#witnessed();
    const body = { tags: [...tags, `scorecard:${witness.subject.scorecardId}`], ...options };
    const reply = await this.change('POST', '/api/cache/purge', body, at);
    for (const gateway of this.gateways) {
      await this.eventually(async () => assert.notEqual((await witness.explain(gateway)).next.store, 'not-asked'));
    }
    return reply;
  }

  /** A rubric that every gateway holds, to be purged along, and that tells when a gateway knows of it. */
  async #witnessed(): Promise<Reader> {
    this.#witness ??= await this.reader(GET_RUBRIC);
    const { subject, path, key } = this.#witness;
    const record = aScorecard({ _id: subject.scorecardId, workspaceId: subject.workspaceId });
    // Even if the store fails.
    const end = this.store.override(new RegExp(`/${subject.scorecardId}$`), (request, response) =>
      sendJson(request, response, record),
    );
    for (const gateway of this.gateways) {
      await this.eventually(async () => {
        await gateway.get(path, { key });
        assert.equal((await this.explain(path, gateway)).next.store, 'not-asked');
      });
    }
    end();
    return this.#witness;
  }

  eventually<T>(check: () => Promise<T> | T): Promise<T> {
    return vi.waitFor(check, { timeout: WITHIN_MS, interval: 5 });
  }

  /** Whether a gateway has found Redis too slow, or gone, since it was asked last. */
  hasLostRedis(): boolean {
    const lines = this.gateways.flatMap(({ logLines }) => logLines);
    const fresh = lines.filter((line) => !this.#knownLines.has(line) && /"dependency":"(redis|quota|keys)/.test(line));
    for (const line of fresh) this.#knownLines.add(line);
    return fresh.length > 0;
  }

  async close(): Promise<void> {
    await Promise.all(this.gateways.map((gateway) => gateway.close()));
    this.#raw?.disconnect();
    await this.redis?.close();
    await this.store.close();
  }

  #gateway(index: number): TestGateway {
    const gateway = this.gateways[index % this.gateways.length];
    if (gateway === undefined) throw new Error('There is no gateway.');
    return gateway;
  }

  async #untilSameTimes(): Promise<void> {
    const wanted = await timesAt(this.here);
    for (const gateway of this.gateways) {
      await this.eventually(async () => assert.deepEqual(await timesAt(gateway), wanted));
    }
  }
}

const ttlSchema = z.object({
  classes: z.array(z.object({ class: z.string(), freshMs: z.number(), staleMs: z.number(), errorMs: z.number() })),
});

async function timesAt(gateway: TestGateway): Promise<z.output<typeof ttlSchema>> {
  return ttlSchema.parse((await gateway.admin('GET', '/api/cache/ttl')).json);
}

export function seenOf({ status, headers, text }: Reply): Seen {
  return { status, cache: String(headers['cache-status']), age: headers.age, text };
}

export const containing = (part: string): unknown => expect.stringContaining(part);
export const MISS = 'evalgate; fwd=uri-miss; stored';
export const HIT: unknown = expect.stringMatching(/^evalgate; hit; ttl=\d+$/);
export const STALE: unknown = expect.stringMatching(/^evalgate; hit; ttl=(0|-\d+); detail=stale-while-revalidate$/);
export const ON_ERROR: unknown = expect.stringMatching(/^evalgate; hit; ttl=(0|-\d+); detail=stale-if-error$/);
