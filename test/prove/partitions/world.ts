/**
 * Three hosts of a network that the test makes: on each a Redis server, a Sentinel and a gateway. The store and the clients
 * are where the test is, and reach every host at any time: only the links between the hosts are cut.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { NetworkHosts } from '../../support/network-hosts.ts';
import { GatewayProcess } from '../../support/process.ts';
import { anEvaluation, WORKSPACE_A } from '../../support/records.ts';
import { openProcessHost, type ServerProgram } from '../../support/redis/process.ts';
import { launchRedis, REPLICATION, type ServerHost, untilFollowing } from '../../support/redis/server.ts';
import { untilAll, withClient } from '../../support/redis/client.ts';
import type { TestRedis } from '../../support/redis.ts';
import { SteppedClock } from '../../support/stepped-clock.ts';
import { createStoreServer, type StoreServer } from '../../support/store-server.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import type { Operation } from './history.ts';

export const HOSTS = ['a', 'b', 'c'] as const;
export type HostName = (typeof HOSTS)[number];

const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
const PRIMARY = 'main';
const DOWN_AFTER_MS = 1000;
/** As docs/redis.md advises: an old primary that is cut off takes changes for two seconds. */
export const MAX_LAG_SECONDS = 2;
const SAFE = ['min-replicas-to-write 1', `min-replicas-max-lag ${MAX_LAG_SECONDS}`];
const RECORDS = Array.from({ length: 20 }, (_, index) => `ev_${index}`);
const ADMIN_TOKEN = 'a-token-of-operators';

/** They say how it was: a loss of history is reported for an hour, and slow answers for five minutes. */
const LOOKING_BACK: ReadonlySet<string> = new Set(['history', 'answers']);

const revokedSchema = z.object({ warning: z.string().nullable() });

interface Host {
  readonly name: HostName;
  readonly redis: TestRedis;
  readonly gateway: GatewayProcess;
  /** The gateway's wall clock; null if none can be set here. */
  readonly clock: SteppedClock | null;
}

export class PartitionedWorld {
  readonly network: NetworkHosts;
  readonly hosts: readonly Host[];
  readonly records = RECORDS;
  readonly #store: StoreServer;
  readonly #stack: AsyncDisposableStack;
  readonly #versions = new Map<string, number>();

  private constructor(parts: {
    readonly network: NetworkHosts;
    readonly hosts: readonly Host[];
    readonly store: StoreServer;
    readonly stack: AsyncDisposableStack;
  }) {
    this.network = parts.network;
    this.hosts = parts.hosts;
    this.#store = parts.store;
    this.#stack = parts.stack;
  }

  static async start(program: ServerProgram): Promise<PartitionedWorld> {
    const stack = new AsyncDisposableStack();
    try {
      const network = await NetworkHosts.make(HOSTS);
      stack.defer(() => network.close());
      const store = await createStoreServer();
      stack.defer(() => store.close());
      const way = await TcpProxy.start(store.url, network.homeAddress);
      stack.defer(() => way.close());
      for (const id of RECORDS) store.put({ evaluations: [evaluationOf(id, 0)] });
      const places = HOSTS.map((name) => {
        const place = openProcessHost(program, network.host(name));
        stack.defer(() => place.close());
        return place;
      });
      const servers = await startRedis(places);
      const sentinels = HOSTS.map((name) => `${network.host(name).address}:${SENTINEL_PORT}`);
      const folder = await mkdtemp(join(tmpdir(), 'evalgate-clocks-'));
      stack.defer(() => rm(folder, { recursive: true }));
      const started = await Promise.all(
        HOSTS.map(async (name) => {
          const { address, through } = network.host(name);
          const clock = SteppedClock.trouble() === null ? await SteppedClock.make(folder, name) : null;
          const env = {
            HOST: address,
            ADMIN_HOST: address,
            ADMIN_ALLOWED_HOSTS: address,
            ADMIN_TOKEN,
            REDIS_URL: `redis+sentinel://${sentinels.join(',')}/${PRIMARY}`,
            UPSTREAM_URL: way.url,
            UPSTREAM_TOKEN: store.token,
            CHANGES_ANNOUNCED: 'true',
            CACHE_EVALUATION_FRESH: '1h',
            LOG_LEVEL: 'warn',
          };
          const gateway = await GatewayProcess.start({ env, through: [...through, ...(clock?.through ?? [])] });
          stack.defer(() => gateway.kill());
          return { name, gateway, clock };
        }),
      );
      const hosts = started.map((host, index) => ({ ...host, redis: nth(servers, index) }));
      return new PartitionedWorld({ network, hosts, store, stack });
    } catch (error) {
      await stack.disposeAsync();
      throw error;
    }
  }

  host(name: HostName): Host {
    const host = this.hosts.find((one) => one.name === name);
    if (host === undefined) throw new RangeError(`There is no host ${name}.`);
    return host;
  }

  /** The host whose server is the primary that all Sentinels name; null while they do not agree. */
  async primary(): Promise<HostName | null> {
    const named = await Promise.all(
      HOSTS.map(async (name) => {
        const url = `redis://${this.network.host(name).address}:${SENTINEL_PORT}`;
        return withClient(url, async (client) =>
          String(await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY)),
        );
      }),
    );
    const [first = ''] = named;
    if (!named.every((one) => one === first)) return null;
    return HOSTS.find((name) => first.startsWith(`${this.network.host(name).address},`)) ?? null;
  }

  /**
   * Names what is not whole; null if Redis has one primary with two replicas and each gateway finds all that it depends on
   * well.
   */
  async lacking(): Promise<string | null> {
    const name = await this.primary();
    if (name === null) return 'the Sentinels do not agree on the primary';
    const info = await withClient(this.host(name).redis.url, (client) => client.info('replication'));
    const followers = (info.match(/state=online/g) ?? []).length;
    if (!info.includes('role:master') || followers < HOSTS.length - 1) return `${name} has ${followers} replicas`;
    for (const { name: at, gateway } of this.hosts) {
      const { code, dependencies } = await gateway.readiness();
      const ill = dependencies.filter(
        (one) => ['down', 'degraded'].includes(one.status) && !LOOKING_BACK.has(one.name),
      );
      if (code !== 200 || ill.length > 0)
        return `the gateway at ${at} is not well: ${code} ${ill.map((one) => `${one.name} ${one.detail}`).join('; ')}`;
    }
    return null;
  }

  /** Changes a record in the store and announces that at one gateway. */
  async edit(id: string, at: HostName): Promise<Operation> {
    const version = (this.#versions.get(id) ?? 0) + 1;
    this.#versions.set(id, version);
    this.#store.put({ evaluations: [evaluationOf(id, version)] });
    const change = { evaluation: id, workspace: WORKSPACE_A, kinds: ['evaluation'] };
    return this.#operate({ kind: 'edit', at, id, version }, 'POST', '/api/changes', { changes: [change] });
  }

  /** Changes a record in the store, and purges it at one gateway. */
  async purge(id: string, at: HostName): Promise<Operation> {
    const version = (this.#versions.get(id) ?? 0) + 1;
    this.#versions.set(id, version);
    this.#store.put({ evaluations: [evaluationOf(id, version)] });
    const body = { tags: [`evaluation:${id}`] };
    return this.#operate({ kind: 'purge', at, id, version }, 'POST', '/api/cache/purge', body);
  }

  async revoke(keyId: string, at: HostName): Promise<Operation> {
    return this.#operate({ kind: 'revoke', at, id: keyId, version: 0 }, 'DELETE', `/api/keys/${keyId}`);
  }

  async close(): Promise<void> {
    await this.#stack.disposeAsync();
  }

  async #operate(
    operation: Pick<Operation, 'kind' | 'at' | 'id' | 'version'>,
    method: string,
    path: string,
    body?: object,
  ): Promise<Operation> {
    const response = await this.host(operation.at).gateway.admin(method, path, body);
    const text = await response.text();
    const isAcknowledged = response.ok;
    const isSure =
      isAcknowledged && (operation.kind !== 'revoke' || revokedSchema.parse(JSON.parse(text)).warning === null);
    return { ...operation, endedMs: Date.now(), isAcknowledged, isSure, status: response.status };
  }
}

async function startRedis(places: readonly ServerHost[]): Promise<readonly TestRedis[]> {
  const [first, ...others] = places;
  if (first === undefined) throw new RangeError('There is no host.');
  const config = [...REPLICATION, ...SAFE, 'repl-ping-replica-period 1'];
  const primary = await launchRedis(first, REDIS_PORT, { config });
  const follow = `replicaof ${first.address} ${REDIS_PORT}`;
  const replicas = await Promise.all(
    others.map((place) => launchRedis(place, REDIS_PORT, { config: [...config, follow] })),
  );
  await untilFollowing(replicas);
  const sentinel = [
    `sentinel monitor ${PRIMARY} ${first.address} ${REDIS_PORT} 2`,
    `sentinel down-after-milliseconds ${PRIMARY} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${PRIMARY} 6000`,
  ];
  for (const place of places) await place.launch({ port: SENTINEL_PORT, config: sentinel, isSentinel: true });
  await untilAll(places, 'the Sentinels know all', ({ address }) =>
    withClient(`redis://${address}:${SENTINEL_PORT}`, async (client) => {
      const text = String(await client.call('SENTINEL', 'MASTER', PRIMARY));
      return text.includes('num-other-sentinels,2') && text.includes('num-slaves,2');
    }),
  );
  return [primary, ...replicas];
}

function evaluationOf(id: string, version: number) {
  return anEvaluation({ _id: id, title: `v${version}` });
}

function nth<T>(all: readonly T[], index: number): T {
  const one = all[index];
  if (one === undefined) throw new RangeError(`There is no ${index}.`);
  return one;
}
