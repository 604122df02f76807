/** The sample store in this process, whose calls a test changes, before four gateways that it announces the changes to. */
import { SampleUpstream } from '../../src/sample/server.ts';
import { createSampleData } from '../../src/sample/data.ts';
import { evaluationSchema } from '../../src/domain/records.ts';
import { hashToken } from '../../src/keys/token.ts';
import { isJsonObject } from '../../src/sample/routes.ts';
import { GatewayProcess } from './process.ts';
import { startRedis, type TestRedis } from './redis.ts';

const TOKEN = 'a-token';
const DAY = '24h';
const CLASSES = ['LIST', 'EVALUATION', 'TRANSCRIPT', 'SCORECARD'];

export interface ChangingOptions {
  readonly gateways: number;
  readonly evaluations: number;
  readonly latencyMs: number;
  /** So many calls at once the store answers after that latency exactly; without it one in a hundred takes 12 times as long. */
  readonly capacity?: number;
  /** Whether the gateways have the feed of changes; they do by default. */
  readonly hasFeed?: boolean;
  /** A file of further settings. */
  readonly configFile?: string;
}

export interface Edited {
  readonly id: string;
  readonly workspace: string;
  readonly title: string;
  readonly created?: true;
  readonly deleted?: true;
}

export class ChangingSample {
  readonly redis: TestRedis;
  readonly gateways: readonly GatewayProcess[];
  readonly key: string;
  /** The completed calls, and the workspace of each. */
  readonly calls: ReadonlyMap<string, string>;
  /** Calls to the store so far. */
  storeCalls = 0;
  /** Calls for a list so far. */
  listCalls = 0;
  readonly #data: ReturnType<typeof createSampleData>;
  readonly #stack: AsyncDisposableStack;

  private constructor(parts: {
    readonly redis: TestRedis;
    readonly gateways: readonly GatewayProcess[];
    readonly key: string;
    readonly data: ReturnType<typeof createSampleData>;
    readonly stack: AsyncDisposableStack;
  }) {
    this.redis = parts.redis;
    this.gateways = parts.gateways;
    this.key = parts.key;
    this.#data = parts.data;
    this.#stack = parts.stack;
    const whole = parts.data.evaluations.filter(({ _id, state }) => {
      const record = parts.data.records.evaluations.get(_id);
      return state === 'COMPLETED' && isJsonObject(record) && typeof record['overallScore'] === 'number';
    });
    this.calls = new Map(whole.map(({ _id, workspaceId }) => [_id, workspaceId]));
  }

  static async start({
    gateways,
    evaluations,
    latencyMs,
    capacity,
    hasFeed = true,
    configFile,
  }: ChangingOptions): Promise<ChangingSample> {
    const stack = new AsyncDisposableStack();
    const redis = await startRedis({ isDurable: true });
    stack.defer(() => redis.close());
    const data = createSampleData({ seed: 3, evaluations });
    let world: ChangingSample | null = null;
    const store = new SampleUpstream({
      data,
      token: TOKEN,
      latency: latencyMs,
      ...(capacity !== undefined && { faults: { capacity } }),
      intercept: ({ route }) => {
        if (world !== null) world.storeCalls += 1;
        if (world !== null && route.resource === 'list') world.listCalls += 1;
        return false;
      },
    });
    const { url } = await store.listen(0);
    stack.defer(() => store.close());
    const times = CLASSES.flatMap((name) =>
      ['FRESH', 'STALE', 'ERROR'].map((time) => [`CACHE_${name}_${time}`, DAY] as const),
    );
    const env = {
      UPSTREAM_URL: url,
      UPSTREAM_TOKEN: TOKEN,
      REDIS_URL: redis.url,
      CHANGES_ANNOUNCED: String(hasFeed),
      LOG_LEVEL: 'warn',
      ...(configFile !== undefined && { CONFIG_FILE: configFile }),
      ...Object.fromEntries(times),
    };
    const started = await Promise.all(Array.from({ length: gateways }, () => GatewayProcess.start({ env })));
    for (const gateway of started) stack.defer(() => gateway.kill());
    const [first] = started;
    if (first === undefined) throw new RangeError('There is no gateway.');
    const key = await first.issueKey({ workspaceIds: data.workspaceIds });
    world = new ChangingSample({ redis, gateways: started, key, data, stack });
    return world;
  }

  /** Empties Redis, and brings the key back. */
  async emptyRedis(): Promise<void> {
    await this.redis.flush();
    const limits = { perMinute: 1_000_000_000, perHour: 1_000_000_000 };
    const about = { keyId: 'again', name: 'again', workspaceIds: this.#data.workspaceIds, scopes: ['calls.read'] };
    const keys = [{ ...about, hash: hashToken(this.key), limits }];
    await this.gateway(0).administer('POST', '/api/keys/import', { keys });
  }

  /** The gateway of that place, round and round. */
  gateway(place: number): GatewayProcess {
    const gateway = this.gateways[place % this.gateways.length];
    if (gateway === undefined) throw new RangeError('There is no gateway.');
    return gateway;
  }

  /** Changes the title of a call in the store, and announces nothing. */
  edit(id: string, title: string): Edited {
    const record = this.#data.records.evaluations.get(id);
    this.#data.records.evaluations.set(id, { ...(isJsonObject(record) ? record : {}), title });
    return { id, workspace: workspaceOf(record), title };
  }

  /** Copies a call under another id. `about`: what else is different. */
  create(from: string, id: string, about: object = {}): Edited {
    const { evaluations } = this.#data.records;
    const record = evaluations.get(from);
    const title = `Created ${id}`;
    const workspace = workspaceOf(record);
    evaluations.set(id, { ...(isJsonObject(record) ? record : {}), ...about, _id: id, title });
    return { id, workspace, title, created: true };
  }

  remove(id: string): Edited {
    const { evaluations } = this.#data.records;
    const workspace = workspaceOf(evaluations.get(id));
    evaluations.delete(id);
    return { id, workspace, title: '', deleted: true };
  }

  /** The titles of all completed calls that are whole, by id. */
  titles(): ReadonlyMap<string, string> {
    const parsed = [...this.#data.records.evaluations.values()].map(
      (record) => evaluationSchema.safeParse(record).data,
    );
    return new Map(parsed.flatMap((call) => (call?.state === 'COMPLETED' ? [[call._id, call.title]] : [])));
  }

  /** Resolves with the status of the answer. */
  async announce(edited: readonly Edited[], place = 0, webhookId: string | null = null): Promise<number> {
    const changes = edited.map(({ id, workspace, title: _title, ...about }) => ({
      evaluation: id,
      workspace,
      kinds: ['evaluation'],
      ...about,
    }));
    const response = await fetch(`${this.gateway(place).adminUrl}/api/changes`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(webhookId !== null && { 'webhook-id': webhookId }) },
      body: JSON.stringify({ changes }),
    });
    await response.text();
    return response.status;
  }

  async titleAt(place: number, id: string): Promise<string> {
    return (await this.readAt(place, id)).title;
  }

  async readAt(place: number, id: string): Promise<{ readonly title: string; readonly cacheStatus: string }> {
    const response = await this.gateway(place).get(`/v2/calls/${id}`, this.key);
    const text = await response.text();
    const title = /"name":"([^"]*)"/.exec(text)?.[1] ?? text;
    return { title, cacheStatus: response.headers.get('cache-status') ?? '' };
  }

  /** Why reads got old copies, as the metrics of all gateways have it. */
  async fallbacks(): Promise<readonly string[]> {
    const texts = await Promise.all(
      this.gateways.map(async (gateway) => (await gateway.admin('GET', '/metrics')).text()),
    );
    return texts.flatMap((text) => text.match(/^evalgate_cache_fallbacks_total\{.*$/gm) ?? []);
  }

  async close(): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

function workspaceOf(record: unknown): string {
  return isJsonObject(record) && typeof record['workspaceId'] === 'string' ? record['workspaceId'] : '';
}
