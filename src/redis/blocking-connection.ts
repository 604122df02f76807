/** A connection of its own beside a link's, for commands that block: nothing else ever queues behind them. */
import { NotSentError, RedisTimeoutError } from './errors.ts';
import { ConnectionHealth } from './health.ts';
import type { Connection, RedisClient, RedisServer } from './open-connection.ts';
import { beforeDeadline } from './request-wait.ts';

type Open = (attempt: number) => Connection;

/** Goes on trying to connect. */
export class BlockingConnection extends ConnectionHealth<Connection> {
  /** `timeoutMs`: the longest that a command may take, blocked or not. */
  constructor(open: Open, timeoutMs: number) {
    super(timeoutMs);
    this.keepOpen(open);
  }

  /**
   * Rejects with NotSentError while there is no connection, and with RedisTimeoutError after the time of a command, which ends
   * the connection.
   */
  async run<T>(send: (client: RedisClient) => Promise<T>): Promise<T> {
    if (!this.isUp() || !this.isReady()) throw new NotSentError('the connection to Redis is not ready');
    const { client } = this.connection;
    try {
      const reply = await beforeDeadline(send(client), this.timeoutMs);
      this.answered();
      return reply;
    } catch (error) {
      if (error instanceof RedisTimeoutError) client.disconnect();
      throw error;
    }
  }

  /** The one Redis, or each primary of the Cluster, on the connections that commands to them take. */
  servers(): readonly RedisServer[] {
    return this.connection.servers();
  }

  /** Makes a new connection, and those after it in that way. A command under way fails. */
  reopen(open?: Open): void {
    const { client } = this.connection;
    if (open !== undefined) this.goOver(open(1), open);
    client.disconnect();
  }

  close(): void {
    this.stop();
    this.connection.client.disconnect();
  }
}
