/** Two gateways, one of them with two workers, before one store and one Redis, with all that can be done to them. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GatewayProcess } from '../../support/process.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { createStoreServer, type StoreServer } from '../../support/store-server.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import { fill, RECORD_MARK, RECORDS, WORKSPACES } from './records.ts';
import { Secrets } from './secrets.ts';
import { type Consumer, QUERY_MARK } from './traffic.ts';

const ADMIN_TOKEN = 'planted-admin-token-5f1c2e';
/** Small, so that the memory tier is full before the measuring begins; short, so that the store is read again and again. */
const CONFIG = 'cache: {memory: 4MB, classes: {list: {fresh: 2s}, evaluation: {fresh: 3s}, transcript: {fresh: 4s}}}\n';
const CHANGED_CONFIG = CONFIG.replace('list: {fresh: 2s}', 'list: {fresh: 3s}');

interface Parts {
  readonly store: StoreServer;
  readonly storeProxy: TcpProxy;
  readonly redis: TestRedis;
  readonly redisProxy: TcpProxy;
  readonly single: GatewayProcess;
  readonly several: GatewayProcess;
  readonly secrets: Secrets;
  readonly configFile: string;
}

export class SoakWorld {
  readonly parts: Parts;
  readonly records = RECORDS;
  readonly #stack: AsyncDisposableStack;
  #isConfigChanged = false;

  private constructor(parts: Parts, stack: AsyncDisposableStack) {
    this.parts = parts;
    this.#stack = stack;
  }

  static async start(): Promise<SoakWorld> {
    const stack = new AsyncDisposableStack();
    const keep = <T extends { close(): Promise<void> }>(opened: T): T =>
      stack.adopt(opened, (closing) => closing.close());
    const folder = stack.adopt(await mkdtemp(join(tmpdir(), 'evalgate-soak-')), (path) =>
      rm(path, { recursive: true }),
    );
    const configFile = join(folder, 'soak.yaml');
    await writeFile(configFile, CONFIG);
    const redis = keep(await startRedis());
    const redisProxy = keep(await TcpProxy.start(redis.url));
    const store = keep(await createStoreServer());
    fill(store);
    const storeProxy = keep(await TcpProxy.start(store.url));
    const secrets = new Secrets([ADMIN_TOKEN, store.token, QUERY_MARK], [RECORD_MARK]);
    const serve = async (workers: string): Promise<GatewayProcess> => {
      const env = {
        REDIS_URL: redisProxy.url,
        UPSTREAM_URL: storeProxy.url,
        UPSTREAM_TOKEN: store.token,
        UPSTREAM_TIMEOUT: '3s',
        CONFIG_FILE: configFile,
        ADMIN_TOKEN,
        LOG_LEVEL: 'debug',
        WORKERS: workers,
      };
      const gateway = await GatewayProcess.start({ env, onLine: (line) => secrets.search('a log', line) });
      return stack.adopt(gateway, (started) => started.kill());
    };
    const [single, several] = await Promise.all([serve('1'), serve('2')]);
    return new SoakWorld({ store, storeProxy, redis, redisProxy, single, several, secrets, configFile }, stack);
  }

  get urls(): readonly string[] {
    return [this.parts.single.publicUrl, this.parts.several.publicUrl];
  }

  async issue(limits: { readonly perMinute?: number } = {}): Promise<Consumer & { readonly keyId: string }> {
    const { keyId, token } = await this.parts.single.issue({ workspaceIds: WORKSPACES, ...limits });
    this.parts.secrets.add(token);
    const never = Number.POSITIVE_INFINITY;
    return { keyId, token, isLimited: limits.perMinute !== undefined, revoking: { beginMs: never, doneMs: never } };
  }

  /** SIGHUP to both, with another time for lists than before. */
  async reconfigure(): Promise<void> {
    this.#isConfigChanged = !this.#isConfigChanged;
    await writeFile(this.parts.configFile, this.#isConfigChanged ? CHANGED_CONFIG : CONFIG);
    this.parts.single.signal('SIGHUP');
    this.parts.several.signal('SIGHUP');
  }

  /** Searches what the admin listeners say, and returns the event loop's p99 lag at the gateway of one process. Seconds. */
  async look(): Promise<number> {
    let lagSeconds = 0;
    for (const gateway of [this.parts.single, this.parts.several]) {
      for (const path of ['/metrics', '/readyz', '/api/config', '/api/audit']) {
        const text = await (await gateway.admin('GET', path)).text();
        this.parts.secrets.search(path, text);
        const lag = /^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(text)?.[1];
        if (gateway === this.parts.single && lag !== undefined) lagSeconds = Number(lag);
      }
    }
    return lagSeconds;
  }

  /** Resident memory of the gateway that is one process, which nothing restarts. */
  residentBytes(): number {
    const status = readFileSync(`/proc/${this.parts.single.pid}/status`, 'utf8');
    return 1024 * Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]);
  }

  async close(): Promise<void> {
    await this.#stack.disposeAsync();
  }
}
