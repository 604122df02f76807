/**
 * A link to one Redis, to a Cluster, or to the primary that Sentinels name: a connection for commands and one for
 * messages, with bounded waits, and whether Redis answers. Nothing is queued while it does not, and no command is sent
 * twice.
 */
import { isDeepStrictEqual } from 'node:util';
import type { RedisAddress } from './address.ts';
import { BlockingConnection } from './blocking-connection.ts';
import { NotSentError, RedisTimeoutError, replyCode } from './errors.ts';
import { ConnectionHealth, ConnectionTrial, reasonOf } from './health.ts';
import {
  type Connection,
  type Opening,
  openConnection,
  openingOf,
  type RedisAccess,
  type RedisClient,
  type RedisServer,
} from './open-connection.ts';
import { endAfterAnswers, RedisSubscriber } from './pubsub.ts';
import { beforeDeadline } from './request-wait.ts';
import { messageOf } from '../log/error.ts';

/** `state`: keys, quotas, the purge log and all that operators set. `cache`: only the response cache. */
export type RedisRole = 'state' | 'cache';

/** `refused`: by an error reply. `lost`: the connection ended before the answer. `unsent`: there was no connection. */
export type CommandOutcome = 'answered' | 'refused' | 'timeout' | 'lost' | 'unsent';

export interface RedisLinkOptions extends RedisAccess {
  readonly role: RedisRole;
  /** Called for each `run`, so it has to be cheap. */
  readonly onCommand?: (role: RedisRole, outcome: CommandOutcome, seconds: number) => void;
  /** How long a command waits for its answer before it rejects. */
  readonly timeoutMs?: number;
}

/** The part of a link that sends commands to keys. */
export type RedisCommands = Pick<RedisLink, 'run' | 'kind' | 'db'>;

/** Runs what follows a change that was made. If it cannot be sent, that says nothing of the change itself. */
export async function afterChange<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new Error(`after the change: ${messageOf(error)}`, { cause: error });
  }
}

const DEFAULT_TIMEOUT_MS = 250;
/** Between two tries to find a primary in place of a replica. */
const LEAVE_REPLICA_EVERY_MS = 5000;

/** Goes on trying to connect, at least once a second, to a Redis that can't be reached. */
export class RedisLink extends ConnectionHealth {
  readonly role: RedisRole;
  /** On a `cluster` keys lie on several servers: only keys with one hash tag can be in one script. */
  readonly kind: RedisAddress['kind'];
  readonly db: number;
  /** For messages, on a connection of its own that can be lost while `client` is up. */
  readonly subscriber: RedisSubscriber;
  readonly #onCommand: RedisLinkOptions['onCommand'];
  readonly #timeoutListeners = new Set<() => void>();
  readonly #blocking = new Set<BlockingConnection>();
  /** What the connections were opened with, or those that are to take their place. */
  #opening: Opening;
  #connection: Connection;
  /** To take the place of the connection once it answers. */
  #next: { readonly connection: Connection; readonly trial: ConnectionTrial } | null = null;
  #isInDoubt = false;
  #leftReplicaAtMs = Number.NEGATIVE_INFINITY;

  /** Throws RedisAddressError for what is no address of a Redis. */
  constructor({ role, onCommand, timeoutMs = DEFAULT_TIMEOUT_MS, ...access }: RedisLinkOptions) {
    super(timeoutMs);
    this.#opening = openingOf(access);
    const { address } = this.#opening;
    this.role = role;
    this.kind = address.kind;
    this.db = address.db;
    this.#onCommand = onCommand;
    // Before any other listener, so that those who hear that it is up can send.
    this.onUp(() => {
      this.#isInDoubt = false;
    });
    this.#connection = this.#open(this.#opening);
    const publish = (channel: string, message: string): Promise<unknown> => this.client.publish(channel, message);
    this.subscriber = new RedisSubscriber({
      ...this.#connection.messages,
      publish,
      servers: () => this.servers(),
      timeoutMs,
    });
    // Its message to itself goes by this link, and could not be sent while that was down.
    this.onUp(() => void this.subscriber.ping().catch(() => undefined));
    this.follow(this.#connection);
  }

  /**
   * For libraries that take a client of ioredis, and for probes: it is sent to even while Redis counts as down. Another one
   * after `reconnect`.
   */
  get client(): RedisClient {
    return this.#connection.client;
  }

  /** The one Redis, or each primary of the Cluster, as far as they are known now. */
  servers(): readonly RedisServer[] {
    return this.#connection.servers();
  }

  /**
   * Goes over to other credentials or certificates of the same Redis: new connections take the place of the old ones once
   * they answer, and the old ones end once their answers have come. Until then the old ones serve, however long Redis
   * refuses the new ones. Throws RedisAddressError.
   */
  reconnect(access: RedisAccess): void {
    const opening = openingOf(access);
    if (isDeepStrictEqual(opening, this.#opening)) return;
    this.#opening = opening;
    this.#dropNext();
    const connection = this.#open(opening);
    const trial = new ConnectionTrial(connection, this.timeoutMs);
    this.#next = { connection, trial };
    trial.onUp(() => {
      const old = this.#connection;
      trial.end();
      this.#next = null;
      this.#connection = connection;
      this.follow(connection);
      void this.ping().catch(() => undefined);
      void endAfterAnswers(old.client);
      for (const blocking of this.#blocking) blocking.reopen(opening);
    });
    void this.subscriber.replace(connection.messages);
  }

  /**
   * Opens another connection, for commands that block up to `blockMs`. It follows `reconnect`, and ends with the link unless it
   * is closed before. `purpose`: the end of its name in CLIENT LIST.
   */
  openBlocking(purpose: string, blockMs: number): BlockingConnection {
    const options = { name: `evalgate-${this.role}-${purpose}`, timeoutMs: this.timeoutMs + blockMs };
    const blocking = new BlockingConnection(this.#opening, options);
    this.#blocking.add(blocking);
    return blocking;
  }

  /** Why the connections of the last `reconnect` are not in use yet; null if they are. */
  get pendingReason(): Error | null {
    return this.#next?.trial.downReason ?? null;
  }

  #dropNext(): void {
    this.#next?.trial.end();
    this.#next?.connection.client.disconnect();
    this.#next = null;
  }

  #open(opening: Opening): Connection {
    const about = { name: `evalgate-${this.role}`, timeoutMs: this.timeoutMs };
    const connection: Connection = openConnection(opening, about, {
      leavesReplica: (error) => this.#leavesReplica(error),
      onNodeFailure: (reason) => {
        if (this.#connection === connection) this.setDown(reason);
      },
      onNodeLeft: (node) => {
        if (this.#connection === connection) this.subscriber.leave(node);
      },
    });
    return connection;
  }

  /**
   * Runs commands, for everything else. Rejects with NotSentError at once while Redis is down, and with RedisTimeoutError
   * after `timeoutMs` without an answer; then Redis counts as down until a probe is answered in time, so that nothing else
   * waits for it (R6: a request waits for Redis once, and for a bounded time).
   *
   * ioredis's diagnostics channel names server and database, which does not distinguish the two roles if they share one
   * Redis; so commands are timed here.
   */
  async run<T>(send: (client: RedisClient) => Promise<T>): Promise<T> {
    // While one node of a Cluster is down, the others still answer for their keys.
    const canSend = this.isReady() && (this.kind === 'cluster' || super.isUp());
    if (this.#isInDoubt || !canSend) {
      this.#onCommand?.(this.role, 'unsent', 0);
      throw new NotSentError(`the ${this.role} Redis does not answer`, { cause: this.downReason });
    }
    const sentAtMs = performance.now();
    const report = (outcome: CommandOutcome): void => {
      this.#onCommand?.(this.role, outcome, (performance.now() - sentAtMs) / 1000);
    };
    try {
      const reply = await beforeDeadline(send(this.client), this.timeoutMs);
      report('answered');
      // One node of a Cluster says nothing of the others.
      if (this.kind !== 'cluster') this.answered();
      return reply;
    } catch (error) {
      if (error instanceof RedisTimeoutError) {
        report('timeout');
        this.setDown(error);
        for (const listener of this.#timeoutListeners) listener();
      } else report(replyCode(error) === null ? 'lost' : 'refused');
      throw reasonOf(error);
    }
  }

  /**
   * Sends nothing until a probe has ended. For a Redis that requests can do without, when another one has timed out: the
   * request that waited there does not wait here too (R6).
   */
  async doubt(): Promise<void> {
    this.#isInDoubt = true;
    // A failure is reported by the health.
    await this.ping().catch(() => undefined);
    this.#isInDoubt = false;
  }

  /** Calls back at each command that timed out. */
  onTimeout(listener: () => void): void {
    this.#timeoutListeners.add(listener);
  }

  /** Whether Redis answered lately, and is not in doubt. False until the first connection stands. */
  override isUp(): boolean {
    return !this.#isInDoubt && super.isUp();
  }

  /** Drops all connections. Answers still awaited reject. */
  async close(): Promise<void> {
    this.stop();
    this.subscriber.close();
    this.#dropNext();
    for (const blocking of this.#blocking) blocking.close();
    this.#connection.client.disconnect();
  }

  /**
   * Whether to connect again after an error reply: after a failover the old primary refuses writes, and the address may
   * lead to the new one. Not at each refusal: an address that goes on leading to a replica would only be lost and found,
   * many times a second.
   */
  #leavesReplica(error: Error): boolean {
    const nowMs = performance.now();
    if (replyCode(error) !== 'READONLY' || nowMs - this.#leftReplicaAtMs < LEAVE_REPLICA_EVERY_MS) return false;
    this.#leftReplicaAtMs = nowMs;
    this.downReason = error;
    return true;
  }
}
