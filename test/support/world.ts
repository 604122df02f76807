/**
 * The world of a test: gateways in this process in front of one store, with one clock: one that keeps everything in memory, or
 * several over one Redis. A suite that reads `here` and `there` holds for both.
 *
 *     const world = await forFile(World.start('redis'));
 *     const reader = await world.reader(GET_CALL);
 *     expect(await reader.ask(world.there)).toMatchObject({ status: 200 });
 */
import assert from 'node:assert/strict';
import { expect, vi } from 'vitest';
import { z } from 'zod';
import { systemTimers } from '../../src/time/timers.ts';
import { type EndpointRow, GET_RUBRIC } from '../http/common/endpoints.ts';
import { keyFor, newSubject, putSubject, type Subject } from '../http/common/subject.ts';
import { readinessOf } from './admin.ts';
import { type Reply, startTestGateway, TEST_CONFIG, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { ManualClock, RunningClock } from './manual-clock.ts';
import { connectToAny, namesIn, type TestClient } from './redis/client.ts';
import { startRedis, type TestRedis } from './redis.ts';
import { aScorecard } from './records.ts';
import { createStoreServer, type SeenRequest, sendJson, type StoreServer } from './store-server.ts';

export const BACKENDS = ['memory', 'redis'] as const;
export type BackendKind = (typeof BACKENDS)[number];

/** How long a test waits for what another process or Redis has to do. */
export const WITHIN = { timeout: 15_000, interval: 10 };
/** The same if another server has to take over. */
export const FAILOVER = { timeout: 30_000, interval: 25 };

const entrySchema = z.looseObject({
  state: z.string(),
  owner: z.string(),
  ageMs: z.number(),
  ttlMs: z.number(),
  bytes: z.number(),
});
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
const membersSchema = z.object({ members: z.array(z.object({ status: z.string() })) });

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

type GatewayOptions = Omit<TestGatewayOptions, 'store' | 'config'>;

export interface WorldOptions extends GatewayOptions {
  /** Two over a Redis, else one. */
  readonly gateways?: number;
  /** Settings beside those that all test gateways have, as YAML. */
  readonly settings?: string;
  /** The address of a Redis that the test itself started. */
  readonly redisUrl?: string;
  /** Where the first gateway finds Redis, if not at its address. */
  readonly redisUrlHere?: (url: string) => Promise<string>;
}

interface Shared extends TestGatewayOptions {
  readonly store: StoreServer;
  readonly clock: ManualClock;
}

export class World {
  readonly kind: BackendKind;
  readonly store: StoreServer;
  readonly clock: ManualClock;
  /** One of its own. */
  readonly redis: TestRedis | null;
  readonly gateways: TestGateway[] = [];
  readonly #redisUrl: string | undefined;
  readonly #shared: Shared;
  readonly #knownLines = new Set<string>();
  #raw: TestClient | null = null;
  #witness: Reader | null = null;

  private constructor(redis: TestRedis | null, redisUrl: string | undefined, shared: Shared) {
    this.kind = redisUrl === undefined ? 'memory' : 'redis';
    this.redis = redis;
    this.#redisUrl = redisUrl;
    this.store = shared.store;
    this.clock = shared.clock;
    this.#shared = shared;
  }

  static async start(kind: BackendKind, options: WorldOptions = {}): Promise<World> {
    const { env = {}, settings = '', redisUrl, redisUrlHere, gateways = kind === 'redis' ? 2 : 1 } = options;
    const { timers = systemTimers, clock = new ManualClock() } = options;
    const store = await createStoreServer();
    const redis = kind === 'redis' && redisUrl === undefined ? await startRedis() : null;
    const url = redis?.url ?? redisUrl;
    const world = new World(redis, url, { env, config: TEST_CONFIG + settings, timers, store, clock });
    const first = url !== undefined && redisUrlHere !== undefined ? { REDIS_URL: await redisUrlHere(url) } : {};
    for (let index = 0; index < gateways; index += 1) await world.join({ env: index === 0 ? first : {} });
    return world;
  }

  /** One more gateway in front of the same store. */
  async join(more: GatewayOptions = {}): Promise<TestGateway> {
    const { env } = this.#shared;
    const redis = this.#redisUrl === undefined ? {} : { REDIS_URL: this.#redisUrl };
    const gateway = await startTestGateway({ ...this.#shared, ...more, env: { ...redis, ...env, ...more.env } });
    this.gateways.push(gateway);
    return gateway;
  }

  /** One gateway ends, and is no part of the world any more. */
  async leave(gateway: TestGateway): Promise<void> {
    this.gateways.splice(this.gateways.indexOf(gateway), 1);
    await gateway.close();
  }

  get here(): TestGateway {
    return this.gateway(0);
  }

  /** The other gateway; the same one if there is no Redis. */
  get there(): TestGateway {
    return this.gateway(1);
  }

  /** The gateway of that place, round and round. */
  gateway(place: number): TestGateway {
    return nth(this.gateways, place % this.gateways.length);
  }

  async raw(): Promise<TestClient> {
    if (this.#redisUrl === undefined) throw new Error('There is no Redis.');
    this.#raw ??= await connectToAny(this.#redisUrl, 5000);
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
    const reader = path.startsWith('/v1') ? '' : workspaceIds.map((id) => `&workspace=${id}`).join('');
    const reply = await gateway.admin('GET', `/api/cache/explain?path=${encodeURIComponent(path)}${reader}`);
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
    await this.everywhere(async (gateway) => assert.notEqual((await witness.explain(gateway)).next.store, 'not-asked'));
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
    await this.everywhere(async (gateway) => {
      await gateway.get(path, { key });
      assert.equal((await this.explain(path, gateway)).next.store, 'not-asked');
    });
    end();
    return this.#witness;
  }

  /** Looks until it is so. */
  eventually<T>(check: () => Promise<T> | T): Promise<T> {
    return vi.waitFor(check, { ...WITHIN, interval: 5 });
  }

  /** Looks at each gateway until it is so there. */
  async everywhere(check: (gateway: TestGateway) => Promise<unknown> | void): Promise<void> {
    for (const gateway of this.gateways) await this.eventually(() => check(gateway));
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

  async #untilSameTimes(): Promise<void> {
    const wanted = await timesAt(this.here);
    await this.everywhere(async (gateway) => assert.deepEqual(await timesAt(gateway), wanted));
  }
}

/** A world over that Redis, by a clock that runs; resolves once each gateway knows all others, and that Redis is well. */
export async function startFleet(
  redisUrl: string,
  { size = 2, env = {} }: { readonly size?: number; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<World> {
  const world = await World.start('redis', { redisUrl, gateways: size, env, clock: new RunningClock() });
  for (const gateway of world.gateways) await quotasAreExact(gateway);
  await world.everywhere(async (gateway) => {
    const { members } = membersSchema.parse((await gateway.admin('GET', '/api/fleet')).json);
    assert.equal(members.filter(({ status }) => status === 'ready').length, size);
  });
  return world;
}

export function nth(gateways: readonly TestGateway[], place: number): TestGateway {
  const gateway = gateways[place];
  if (gateway === undefined) throw new RangeError(`There is no gateway ${place} of ${gateways.length}.`);
  return gateway;
}

/** The status that a gateway answers to a key, at no cost to its quota. */
export async function use(gateway: TestGateway, key: string): Promise<number> {
  return (await gateway.get('/v2/key', { key })).status;
}

/** A dependency on a gateway's `/readyz`: its status and details. */
export async function dependency(gateway: TestGateway, name: string): Promise<string> {
  const found = (await readinessOf(gateway)).of(name);
  return found === undefined ? 'none' : `${found.status}: ${found.detail}`;
}

/** Waits until a gateway reports Redis, and what it hears of keys, as well. */
export async function redisIsWell(gateway: TestGateway): Promise<void> {
  for (const name of ['redis-state', 'redis-cache', 'keys']) await isWell(gateway, name);
}

/** Waits until a gateway reports that quotas are exact again, which it learns by a request or by what it adds to them. */
export async function quotasAreExact(gateway: TestGateway): Promise<void> {
  await redisIsWell(gateway);
  await isWell(gateway, 'quota');
}

async function isWell(gateway: TestGateway, name: string): Promise<void> {
  await vi.waitFor(async () => assert.match(await dependency(gateway, name), /^ok/), FAILOVER);
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
