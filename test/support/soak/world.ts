/** Two gateways, one of them with two workers, before one store and one Redis, with all that can be done to them. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Closers } from '../faults-world.ts';
import { startRedis, type TestRedis } from '../redis.ts';
import { Served } from '../served.ts';
import { createStoreServer, type StoreServer } from '../store-server.ts';
import { TcpProxy } from '../tcp-proxy.ts';
import { fillStore, RECORD_MARK, type SoakRecord, WORKSPACES } from './records.ts';
import { Secrets } from './secrets.ts';
import { type Consumer, QUERY_MARK } from './traffic.ts';

const ADMIN_TOKEN = 'planted-admin-token-5f1c2e';
const UNLIMITED = 1_000_000_000;
/** Small, so that the memory tier is full before the measuring begins; short, so that the store is asked again and again. */
const CONFIG = 'cache: {memory: 4MB, classes: {list: {fresh: 2s}, evaluation: {fresh: 3s}, transcript: {fresh: 4s}}}\n';
const CHANGED_CONFIG = CONFIG.replace('list: {fresh: 2s}', 'list: {fresh: 3s}');

interface Parts {
  readonly store: StoreServer;
  readonly records: readonly SoakRecord[];
  readonly storeProxy: TcpProxy;
  readonly redis: TestRedis;
  readonly redisProxy: TcpProxy;
  readonly single: Served;
  readonly several: Served;
  readonly secrets: Secrets;
  readonly configFile: string;
}

export class SoakWorld {
  readonly parts: Parts;
  #isConfigChanged = false;

  private constructor(parts: Parts) {
    this.parts = parts;
  }

  static async start(closers: Closers): Promise<SoakWorld> {
    const folder = await closers.keep(mkdtemp(join(tmpdir(), 'evalgate-soak-')), (path) =>
      rm(path, { recursive: true }),
    );
    const configFile = join(folder, 'soak.yaml');
    await writeFile(configFile, CONFIG);
    const redis = await closers.keep(startRedis({ controls: true }), (opened) => opened.close());
    const redisProxy = await closers.keep(TcpProxy.start(redis.url), (opened) => opened.close());
    const store = await closers.keep(createStoreServer(), (opened) => opened.close());
    const records = fillStore(store);
    const storeProxy = await closers.keep(TcpProxy.start(store.url), (opened) => opened.close());
    const secrets = new Secrets([ADMIN_TOKEN, store.token, QUERY_MARK], [RECORD_MARK]);
    const env = {
      REDIS_URL: redisProxy.url,
      UPSTREAM_URL: storeProxy.url,
      UPSTREAM_TOKEN: store.token,
      UPSTREAM_TIMEOUT: '3s',
      CONFIG_FILE: configFile,
      ADMIN_TOKEN,
      LOG_LEVEL: 'debug',
    };
    const serve = (own: Readonly<Record<string, string>>): Promise<Served> =>
      closers.keep(
        Served.start({ ...env, ...own }, (line) => secrets.search('a log', line)),
        (opened) => opened.kill(),
      );
    const [single, several] = await Promise.all([serve({}), serve({ WORKERS: '2' })]);
    return new SoakWorld({ store, records, storeProxy, redis, redisProxy, single, several, secrets, configFile });
  }

  get urls(): readonly string[] {
    return [this.parts.single.publicUrl, this.parts.several.publicUrl];
  }

  async issue(limits: { readonly perMinute?: number } = {}): Promise<Consumer & { readonly keyId: string }> {
    const wanted = { workspaceIds: WORKSPACES, perMinute: UNLIMITED, perHour: UNLIMITED, ...limits };
    const { keyId, token } = await this.parts.single.issueKey(wanted);
    this.parts.secrets.add(token);
    const never = Number.POSITIVE_INFINITY;
    return { keyId, token, isLimited: limits.perMinute !== undefined, revoking: { beginMs: never, doneMs: never } };
  }

  /** Through the gateway with workers; throws where it isn't done. */
  async administer(method: string, path: string, body?: object): Promise<void> {
    const response = await this.parts.several.admin(method, path, body);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  }

  /** SIGHUP to both, with another time for lists than before. */
  async reconfigure(): Promise<void> {
    this.#isConfigChanged = !this.#isConfigChanged;
    await writeFile(this.parts.configFile, this.#isConfigChanged ? CHANGED_CONFIG : CONFIG);
    this.parts.single.signal('SIGHUP');
    this.parts.several.signal('SIGHUP');
  }

  /** Searches all that the admin listeners say without being asked for anything in particular. */
  async look(): Promise<{ readonly lagSeconds: number }> {
    let lagSeconds = 0;
    for (const gateway of [this.parts.single, this.parts.several]) {
      for (const path of ['/metrics', '/readyz', '/api/config', '/api/audit']) {
        const text = await (await gateway.admin('GET', path)).text();
        this.parts.secrets.search(path, text);
        const lag = /^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(text)?.[1];
        if (gateway === this.parts.single && lag !== undefined) lagSeconds = Number(lag);
      }
    }
    return { lagSeconds };
  }

  /** Resident memory of the gateway that is one process, which nothing restarts. */
  residentBytes(): number {
    const status = readFileSync(`/proc/${this.parts.single.pid}/status`, 'utf8');
    return 1024 * Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]);
  }
}
