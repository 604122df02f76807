/** Gateways in processes of their own in front of a real HTTP store, with proxies between that can be spoiled. */
import { GatewayProcess, type GatewayProcessOptions } from './gateway-process.ts';
import { Load } from './load.ts';
import { createStoreServer, sendJson, type StoreServer } from './store-server.ts';
import { anEvaluation } from './records.ts';
import { TcpProxy } from './tcp-proxy.ts';

export interface FaultsWorldOptions {
  readonly gateways?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly clockOffsetsMs?: readonly number[];
}

/** What was opened is closed in the opposite order, also where opening the rest fails. */
export class Closers {
  readonly #closers: (() => Promise<unknown>)[] = [];

  async keep<T>(opening: Promise<T>, close: (opened: T) => Promise<unknown>): Promise<T> {
    const opened = await opening;
    this.#closers.push(() => close(opened));
    return opened;
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).toReversed()) await close();
  }
}

/** A store whose evaluations are all there, each with the time of its answer for a name. */
export async function timedStore(): Promise<StoreServer> {
  const store = await createStoreServer();
  store.override(/\/evaluations\/[^/]+$/, (request, response) =>
    sendJson(request, response, timedRecord(request.url?.split('/').at(-1) ?? '')),
  );
  store.override(/\/evaluations$/, (request, response) =>
    sendJson(request, response, { items: [timedRecord('listed')], total: 1 }),
  );
  return store;
}

function timedRecord(id: string): object {
  return anEvaluation({ _id: id, title: String(Date.now()) });
}

export class FaultsWorld {
  readonly store: StoreServer;
  /** Between the gateways and the store. */
  readonly proxy: TcpProxy;
  readonly gateways: readonly GatewayProcess[];
  readonly first: GatewayProcess;
  readonly load: Load;
  readonly #closers: Closers;

  private constructor(
    parts: { store: StoreServer; proxy: TcpProxy; gateways: readonly GatewayProcess[]; load: Load },
    closers: Closers,
  ) {
    const [first] = parts.gateways;
    if (first === undefined) throw new RangeError('There is no gateway.');
    this.store = parts.store;
    this.proxy = parts.proxy;
    this.gateways = parts.gateways;
    this.first = first;
    this.load = parts.load;
    this.#closers = closers;
  }

  static async start({
    gateways: size = 1,
    env = {},
    clockOffsetsMs = [],
  }: FaultsWorldOptions = {}): Promise<FaultsWorld> {
    const closers = new Closers();
    try {
      const store = await closers.keep(timedStore(), (opened) => opened.close());
      const proxy = await closers.keep(TcpProxy.start(store.url), (opened) => opened.close());
      const load = await closers.keep(Load.start(), (opened) => opened.close());
      const options = (index: number): GatewayProcessOptions => ({
        env: { UPSTREAM_URL: proxy.url, UPSTREAM_TOKEN: store.token, ...env },
        clockOffsetMs: clockOffsetsMs[index] ?? 0,
      });
      const gateways = await Promise.all(
        Array.from({ length: size }, (_, index) =>
          closers.keep(GatewayProcess.start(options(index)), (opened) => opened.kill()),
        ),
      );
      return new FaultsWorld({ store, proxy, gateways, load }, closers);
    } catch (error) {
      await closers.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#closers.close();
  }
}

export async function withFaultsWorld<R>(
  options: FaultsWorldOptions,
  run: (world: FaultsWorld) => Promise<R>,
): Promise<R> {
  const world = await FaultsWorld.start(options);
  try {
    return await run(world);
  } finally {
    await world.close();
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
