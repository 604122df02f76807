/**
 * A connection of its own beside a link's, for commands that block: nothing else ever queues behind them. It comes back by
 * itself, also after its client has ended for good. A command that gets no answer in time ends the connection.
 */
import { NotSentError, RedisTimeoutError } from './errors.ts';
import { type Connection, type Opening, openConnection, type RedisClient } from './open-connection.ts';
import { beforeDeadline } from './request-wait.ts';

export interface BlockingConnectionOptions {
  /** The name of the connection in CLIENT LIST. */
  readonly name: string;
  /** The longest that a command may take, blocked or not. */
  readonly timeoutMs: number;
}

export class BlockingConnection {
  readonly #options: BlockingConnectionOptions;
  #opening: Opening;
  #connection: Connection;
  /** Whether the present connection was greeted: it is not used before. */
  #isGreeted = false;
  #isClosed = false;

  constructor(opening: Opening, options: BlockingConnectionOptions) {
    this.#options = options;
    this.#opening = opening;
    this.#connection = this.#open();
  }

  /** Rejects with NotSentError while there is no connection, with RedisTimeoutError after the time of a command. */
  async run<T>(send: (client: RedisClient) => Promise<T>): Promise<T> {
    const connection = this.#present();
    try {
      if (!this.#isGreeted) await this.#within(connection.ask());
      this.#isGreeted = connection === this.#connection;
      return await this.#within(send(connection.client));
    } catch (error) {
      if (error instanceof RedisTimeoutError) connection.client.disconnect(true);
      throw error;
    }
  }

  /** Goes over to other credentials or certificates. A command under way fails. */
  reopen(opening: Opening): void {
    if (this.#isClosed) return;
    this.#connection.client.disconnect();
    this.#opening = opening;
    this.#connection = this.#open();
  }

  close(): void {
    this.#isClosed = true;
    this.#connection.client.disconnect();
  }

  #present(): Connection {
    if (this.#connection.client.status === 'end' && !this.#isClosed) this.#connection = this.#open();
    if (this.#connection.client.status !== 'ready') throw new NotSentError('the connection to Redis is not ready');
    return this.#connection;
  }

  #open(): Connection {
    const connection = openConnection(this.#opening, this.#options, {
      leavesReplica: () => false,
      onNodeFailure: () => undefined,
      onNodeLeft: () => undefined,
    });
    const { client } = connection;
    this.#isGreeted = false;
    // Why a connection fails is reported by the link, which goes the same way.
    client.on('error', () => undefined);
    client.on('close', () => {
      if (this.#connection === connection) this.#isGreeted = false;
    });
    return connection;
  }

  #within<T>(answer: Promise<T>): Promise<T> {
    return beforeDeadline(answer, this.#options.timeoutMs);
  }
}
