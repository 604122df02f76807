/** A primary, its replicas and the Sentinels that watch them, of their own for a test. */
import type { TestRedis } from '../redis.ts';
import { untilAll, withClient } from './client.ts';
import {
  launchRedis,
  onHost,
  type RedisSource,
  REPLICATION,
  type ServerHost,
  together,
  untilFollowing,
} from './server.ts';

const NAME = 'main';
const SENTINELS = 3;

export interface SentinelOptions {
  readonly replicas?: number;
  readonly isDurable?: boolean;
  /** A primary that is silent for so long is replaced. */
  readonly downAfterMs?: number;
}

export interface TestSentinels extends TestRedis {
  /** The primary, as the first Sentinel that answers names it. */
  primary(): Promise<TestRedis>;
  /** Resolves once the Sentinels name another primary than that one, and it is one. */
  replaced(old: TestRedis): Promise<TestRedis>;
}

export async function startSentinels(source: RedisSource, options: SentinelOptions = {}): Promise<TestSentinels> {
  const { replicas = 1, isDurable = false, downAfterMs = 1000 } = options;
  return onHost(source, 1 + replicas + SENTINELS, async (host, [primaryPort = 0, ...ports]) => {
    const primary = await launchRedis(host, primaryPort, { isDurable, config: REPLICATION });
    const replicaConfig = [...REPLICATION, `replicaof 127.0.0.1 ${primaryPort}`];
    const others = await Promise.all(
      ports.slice(0, replicas).map((port) => launchRedis(host, port, { isDurable, config: replicaConfig })),
    );
    await untilFollowing(others);
    const config = [
      `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} 2`,
      `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
      `sentinel failover-timeout ${NAME} 10000`,
    ];
    const sentinelPorts = ports.slice(replicas);
    await Promise.all(sentinelPorts.map((port) => host.launch({ port, config, isSentinel: true })));
    await untilAll(sentinelPorts, 'the Sentinels know all', async (port) => {
      const fields = await ask(port, 'MASTER');
      const valueOf = (name: string): number => Number(fields[fields.indexOf(name) + 1]);
      return valueOf('num-other-sentinels') === SENTINELS - 1 && valueOf('num-slaves') === replicas;
    });
    return groupOf(host, [primary, ...others], sentinelPorts);
  });
}

async function ask(port: number, what: 'MASTER' | 'GET-MASTER-ADDR-BY-NAME'): Promise<readonly string[]> {
  const reply = await withClient(`redis://127.0.0.1:${port}`, (client) => client.call('SENTINEL', what, NAME));
  return Array.isArray(reply) ? reply.map(String) : [];
}

function groupOf(host: ServerHost, servers: readonly TestRedis[], sentinelPorts: readonly number[]): TestSentinels {
  const primary = async (): Promise<TestRedis> => {
    for (const sentinelPort of sentinelPorts) {
      const [, port] = await ask(sentinelPort, 'GET-MASTER-ADDR-BY-NAME').catch(() => []);
      const named = servers.find(({ url }) => new URL(url).port === port);
      if (named !== undefined) return named;
    }
    throw new Error('No Sentinel names the primary.');
  };
  return {
    url: `redis+sentinel://${sentinelPorts.map((port) => `127.0.0.1:${port}`).join(',')}/${NAME}`,
    servers: servers.map(({ url }) => url),
    primary,
    replaced: async (old) => {
      let now = old;
      await untilAll([old], 'the Sentinels name another primary', async () => {
        now = await primary();
        return now !== old && withClient(now.url, async (client) => String(await client.role()).startsWith('master'));
      });
      return now;
    },
    flush: async () => (await primary()).flush(),
    ...together(servers),
    close: () => host.close(),
  };
}
