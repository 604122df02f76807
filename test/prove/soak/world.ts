/**
 * Two gateways before one store and one Redis, with all that can be done to them. The first is one process that lives as
 * long as the soak; the second has two workers, stands behind a balancer, and is replaced at every rollout.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Balancer } from '../../support/balancer.ts';
import { GatewayProcess } from '../../support/process.ts';
import { spawnSentinels, startRedis, type TestRedis, type TestSentinels } from '../../support/redis.ts';
import { createStoreServer, type StoreServer } from '../../support/store-server.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import { fill, putVersion, RECORD_MARK, type SoakRecord } from './records.ts';
import { Secrets } from './secrets.ts';
import { type Consumer, QUERY_MARK } from './traffic.ts';

const ADMIN_TOKEN = 'planted-admin-token-5f1c2e';
/** An announced change is in force in all processes within that time. */
const CHANGED_WITHIN_MS = 1000;

export interface SoakOptions {
  readonly records: readonly SoakRecord[];
  /** The configuration file, and those that a SIGHUP puts in its place, round and round. */
  readonly configs: readonly [string, ...string[]];
  readonly logLevel: string;
  /** One server behind a proxy that cuts connections, or a primary and a replica with three Sentinels. */
  readonly redis: 'proxied' | 'sentinels';
}

interface Parts {
  readonly store: StoreServer;
  readonly storeProxy: TcpProxy;
  readonly redis: TestRedis;
  readonly single: GatewayProcess;
  readonly balancer: Balancer;
  readonly secrets: Secrets;
}

interface Edit {
  version: number;
  /** Since then every reader gets that version. Unix milliseconds; Infinity while the announcement is under way. */
  inForceMs: number;
}

export class SoakWorld {
  readonly parts: Parts;
  readonly records: readonly SoakRecord[];
  readonly #stack: AsyncDisposableStack;
  readonly #serve: (workers: string) => Promise<GatewayProcess>;
  readonly #reconfigure: () => Promise<void>;
  readonly #redisProxy: TcpProxy | null;
  readonly #sentinels: TestSentinels | null;
  readonly #edits = new Map<string, Edit>();
  #several: GatewayProcess;

  private constructor(
    parts: Parts,
    more: {
      readonly records: readonly SoakRecord[];
      readonly stack: AsyncDisposableStack;
      readonly serve: (workers: string) => Promise<GatewayProcess>;
      readonly reconfigure: () => Promise<void>;
      readonly redisProxy: TcpProxy | null;
      readonly sentinels: TestSentinels | null;
      readonly several: GatewayProcess;
    },
  ) {
    this.parts = parts;
    this.records = more.records;
    this.#stack = more.stack;
    this.#serve = more.serve;
    this.#reconfigure = more.reconfigure;
    this.#redisProxy = more.redisProxy;
    this.#sentinels = more.sentinels;
    this.#several = more.several;
  }

  static async start({ records, configs, logLevel, redis: topology }: SoakOptions): Promise<SoakWorld> {
    const stack = new AsyncDisposableStack();
    const keep = <T extends { close(): Promise<void> }>(opened: T): T =>
      stack.adopt(opened, (closing) => closing.close());
    const folder = stack.adopt(await mkdtemp(join(tmpdir(), 'evalgate-soak-')), (path) =>
      rm(path, { recursive: true }),
    );
    const configFile = join(folder, 'soak.yaml');
    await writeFile(configFile, configs[0]);
    const sentinels = topology === 'sentinels' ? keep(await spawnSentinels()) : null;
    const redis = sentinels ?? keep(await startRedis());
    const redisProxy = sentinels === null ? keep(await TcpProxy.start(redis.url)) : null;
    const store = keep(await createStoreServer());
    fill(store, records);
    const storeProxy = keep(await TcpProxy.start(store.url));
    const secrets = new Secrets([ADMIN_TOKEN, store.token, QUERY_MARK], [RECORD_MARK]);
    const onLine = (line: string): void => secrets.search('a log', line);
    const serve = async (workers: string): Promise<GatewayProcess> => {
      const env = {
        REDIS_URL: redisProxy?.url ?? redis.url,
        UPSTREAM_URL: storeProxy.url,
        UPSTREAM_TOKEN: store.token,
        UPSTREAM_TIMEOUT: '3s',
        CONFIG_FILE: configFile,
        ADMIN_TOKEN,
        LOG_LEVEL: logLevel,
        WORKERS: workers,
      };
      const gateway = await GatewayProcess.start({ env, isProbed: workers === '1', onLine });
      return stack.adopt(gateway, (started) => started.kill());
    };
    const [single, several] = await Promise.all([serve('1'), serve('2')]);
    const balancer = keep(await Balancer.start());
    await balancer.add(several);
    let place = 0;
    const reconfigure = (): Promise<void> => {
      place += 1;
      return writeFile(configFile, configs[place % configs.length] ?? '');
    };
    const parts = { store, storeProxy, redis, single, balancer, secrets };
    return new SoakWorld(parts, { records, stack, serve, reconfigure, redisProxy, sentinels, several });
  }

  get urls(): readonly string[] {
    return [this.parts.single.publicUrl, this.parts.balancer.url];
  }

  /** The gateway with two workers that is in service now. */
  get several(): GatewayProcess {
    return this.#several;
  }

  get redisProxy(): TcpProxy {
    if (this.#redisProxy === null) throw new Error('There is no proxy before these Sentinels.');
    return this.#redisProxy;
  }

  get sentinels(): TestSentinels {
    if (this.#sentinels === null) throw new Error('This Redis has no Sentinels.');
    return this.#sentinels;
  }

  async issue(limits: { readonly perMinute?: number } = {}): Promise<Consumer & { readonly keyId: string }> {
    const workspaceIds = [...new Set(this.records.map(({ workspaceId }) => workspaceId))];
    const { keyId, token } = await this.parts.single.issue({ workspaceIds, ...limits });
    this.parts.secrets.add(token);
    const never = Number.POSITIVE_INFINITY;
    return { keyId, token, isLimited: limits.perMinute !== undefined, revoking: { beginMs: never, doneMs: never } };
  }

  /** Changes the record in the store, and announces that. */
  async edit(record: SoakRecord): Promise<void> {
    const before = this.#edits.get(record.id) ?? { version: 0, inForceMs: 0 };
    const edit = { version: before.version + 1, inForceMs: Number.POSITIVE_INFINITY };
    putVersion(this.parts.store, record, edit.version);
    const change = { evaluation: record.id, workspace: record.workspaceId, kinds: ['evaluation'] };
    await this.parts.single.administer('POST', '/api/changes', { changes: [change] });
    edit.inForceMs = Date.now() + CHANGED_WITHIN_MS;
    this.#edits.set(record.id, edit);
  }

  /** The version that a read which begins now has to show at least. */
  leastVersion(id: string): number {
    const edit = this.#edits.get(id);
    if (edit === undefined) return 0;
    return edit.inForceMs <= Date.now() ? edit.version : edit.version - 1;
  }

  /** Replaces the gateway behind the balancer by another one, as a deployment does: the new one first. */
  async rollOut(): Promise<void> {
    const old = this.#several;
    const next = await this.#serve('2');
    await this.parts.balancer.add(next);
    this.#several = next;
    const [code, signal] = await old.stop();
    this.parts.balancer.remove(old);
    if (code !== 0) throw new Error(`A gateway that was told to stop ended with ${code ?? signal}.`);
  }

  /** SIGHUP to both, with the next configuration. */
  async reconfigure(): Promise<void> {
    await this.#reconfigure();
    this.parts.single.signal('SIGHUP');
    this.#several.signal('SIGHUP');
  }

  /** Searches what the admin listeners say, and returns their metrics. */
  async look(): Promise<{ readonly single: string; readonly several: string }> {
    const searched = async (gateway: GatewayProcess): Promise<string> => {
      let metrics = '';
      for (const path of ['/metrics', '/readyz', '/api/config', '/api/audit']) {
        const text = await (await gateway.admin('GET', path)).text();
        this.parts.secrets.search(path, text);
        if (path === '/metrics') metrics = text;
      }
      return metrics;
    };
    return { single: await searched(this.parts.single), several: await searched(this.#several) };
  }

  async close(): Promise<void> {
    await this.#stack.disposeAsync();
  }
}
