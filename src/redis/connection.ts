/**
 * A link to one Redis, to a Cluster, or to the primary that Sentinels name: a connection for commands and one for
 * messages, with bounded waits, and whether Redis answers. Nothing is queued while it does not, and no command is sent
 * twice.
 */
import { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { RedisAddress } from './address.ts';
import { BlockingConnection } from './blocking-connection.ts';
import { ConnectionLostError, NotSentError, RedisTimeoutError, replyCode } from './errors.ts';
import { ConnectionHealth, ConnectionTrial, reasonOf } from './health.ts';
import {
  type Connection,
  messageConnections,
  type Opening,
  openConnection,
  openingOf,
  type RedisAccess,
  type RedisClient,
  type RedisServer,
  sentinelConnections,
} from './open-connection.ts';
import { endAfterAnswers, RedisSubscriber } from './pubsub.ts';
import { type AddressSetting, type Refusal, refusalOf } from './refusal.ts';
import { beforeDeadline } from './request-wait.ts';
import { SentinelWatch } from './sentinels.ts';
import { Trial } from './trial.ts';
import { ValueLimit, ValueTooLargeError } from './value-limit.ts';

/** `state`: keys, quotas, the journal and all that operators set. `cache`: only the response cache. */
export type RedisRole = 'state' | 'cache';

/** `refused`: by an error reply. `lost`: the connection ended before the answer. `unsent`: there was no connection. */
export type CommandOutcome = 'answered' | 'refused' | 'timeout' | 'lost' | 'unsent';

export interface RedisLinkOptions extends RedisAccess {
  readonly role: RedisRole;
  /** The variable that holds its address; by its role unless given. */
  readonly setting?: AddressSetting;
  /** Called for each `run`, so it has to be cheap. */
  readonly onCommand?: (role: RedisRole, outcome: CommandOutcome, seconds: number) => void;
  /** How long a command waits for its answer before it rejects. */
  readonly timeoutMs?: number;
}

/** The part of a link that sends commands to keys. */
export type RedisCommands = Pick<RedisLink, 'run' | 'kind' | 'db'>;

const DEFAULT_TIMEOUT_MS = 250;
/** Between two tries to find a primary in place of a replica. */
const LEAVE_REPLICA_EVERY_MS = 5000;

/**
 * Goes on trying to connect, at least once a second, to a Redis that can't be reached. It is up if Redis answers and does what
 * a gateway needs; one that is full or read-only is up, and has a `refusal`.
 */
export class RedisLink extends ConnectionHealth<Connection> {
  readonly role: RedisRole;
  readonly setting: AddressSetting;
  /** On a `cluster` keys lie on several servers: only keys with one hash tag can be in one script. */
  readonly kind: RedisAddress['kind'];
  readonly db: number;
  /** For messages, on a connection of its own that can be lost while `client` is up. */
  readonly subscriber: RedisSubscriber;
  /** How large a value Redis takes. */
  readonly values = new ValueLimit();
  readonly #onCommand: RedisLinkOptions['onCommand'];
  readonly #timeoutListeners = new Set<() => void>();
  readonly #emitter = new EventEmitter<{ change: []; switch: [] }>().setMaxListeners(0);
  readonly #blocking = new Map<BlockingConnection, { readonly name: string; readonly timeoutMs: number }>();
  /** The settings that the connections were opened with, or those that are to take their place. */
  #opening: Opening;
  #sentinels: SentinelWatch;
  /** To take the place of the connection once it answers. */
  #next: ConnectionTrial<Connection> | null = null;
  #isInDoubt = false;
  #leftReplicaAtMs = Number.NEGATIVE_INFINITY;
  readonly #trial: Trial;
  /** The buckets of a Cluster that do not answer. */
  #silent: ReadonlySet<number> = new Set();

  /** Throws RedisAddressError for what is no address of a Redis. */
  constructor({ role, setting, onCommand, timeoutMs = DEFAULT_TIMEOUT_MS, ...access }: RedisLinkOptions) {
    super(timeoutMs);
    this.#opening = openingOf(access);
    const { address } = this.#opening;
    this.role = role;
    this.setting = setting ?? (role === 'state' ? 'REDIS_URL' : 'REDIS_CACHE_URL');
    this.kind = address.kind;
    this.db = address.db;
    this.#onCommand = onCommand;
    this.#trial = new Trial(this, this.values, () => this.#reportChange());
    // Before any other listener, so that those who hear that it is up can send.
    this.onUp(() => {
      this.#isInDoubt = false;
    });
    this.#sentinels = this.#watchSentinels(this.#opening);
    this.keepOpen(this.#openWith(this.#opening));
    const publish = (channel: string, message: string): Promise<unknown> => this.client.publish(channel, message);
    this.subscriber = new RedisSubscriber({
      ...this.#messagesWith(this.#opening),
      publish,
      servers: () => this.servers(),
      timeoutMs,
    });
    // Its message to itself goes by this link, and could not be sent while that was down.
    this.onUp(() => void this.subscriber.ping().catch(() => undefined));
    for (const health of [this, this.subscriber]) {
      health.onUp(() => this.#reportChange());
      health.onDown(() => this.#reportChange());
    }
  }

  /**
   * For libraries that take a client of ioredis, and for probes: it is sent to even while Redis counts as down. Another one
   * after `reconnect`.
   */
  get client(): RedisClient {
    return this.connection.client;
  }

  /** The one Redis, or each primary of the Cluster, as far as they are known now. */
  servers(): readonly RedisServer[] {
    return this.connection.servers();
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
    this.#sentinels.close();
    this.#sentinels = this.#watchSentinels(opening);
    const open = this.#openWith(opening);
    const trial = new ConnectionTrial(open, this.timeoutMs);
    this.#next = trial;
    trial.onUp(() => {
      const old = this.connection.client;
      this.#next = null;
      this.goOver(trial.end(), open);
      void this.ping().catch(() => undefined);
      void endAfterAnswers(old);
      for (const [blocking, about] of this.#blocking) blocking.reopen(this.#blockingWith(opening, about));
    });
    void this.subscriber.replace(this.#messagesWith(opening));
  }

  /**
   * Opens another connection, for commands that block up to `blockMs`. It follows `reconnect`, and ends with the link unless it
   * is closed before. `purpose`: the end of its name in CLIENT LIST.
   */
  openBlocking(purpose: string, blockMs: number): BlockingConnection {
    const about = { name: `evalgate-${this.role}-${purpose}`, timeoutMs: this.timeoutMs + blockMs };
    const blocking = new BlockingConnection(this.#blockingWith(this.#opening, about), about.timeoutMs);
    this.#blocking.set(blocking, about);
    return blocking;
  }

  /** Why such a connection fails is reported by the link, which goes the same way. */
  #blockingWith(
    opening: Opening,
    about: { readonly name: string; readonly timeoutMs: number },
  ): (attempt: number) => Connection {
    return (attempt) =>
      openConnection(opening, about, attempt, {
        leavesReplica: () => false,
        onNodeFailure: () => undefined,
        onNodeLeft: () => undefined,
        onSilent: () => undefined,
        sentinelFault: () => this.#sentinels.fault,
      });
  }

  /** Why the connections of the last `reconnect` are not in use yet; null if they are. */
  get pendingReason(): Error | null {
    return this.#next?.downReason ?? null;
  }

  /** The refusal of Redis to do something that a gateway needs, whether it answers otherwise or not; null if nothing. */
  get refusal(): Refusal | null {
    // A connection that was lost without a word says nothing new.
    const isNews = !this.isUp() && !(this.downReason instanceof ConnectionLostError);
    const refused = isNews ? this.downReason : this.#trial.refused;
    return refusalOf(refused, this) ?? (this.subscriber.isUp() ? null : refusalOf(this.subscriber.downReason, this));
  }

  /**
   * Whether Redis answers for the names of that bucket (names.ts) and does what it is asked. On a Cluster the nodes of other
   * buckets may be away: who decided by himself on what they have would count what others count there.
   */
  decidesOn(bucket: number): boolean {
    if (this.kind === 'cluster') return !this.#isInDoubt && this.isReady() && !this.#silent.has(bucket);
    return this.isUp() && this.#trial.isPassed(this.connection);
  }

  /** A command for that bucket failed: nothing more is until a probe has ended. */
  suspect(bucket: number): void {
    if (this.kind !== 'cluster') return;
    this.#silent = new Set([...this.#silent, bucket]);
    // A failure is reported by the health.
    this.ping().catch(() => undefined);
  }

  /** Calls back when the refusal, or what Redis decides on, may have changed; returns a function that ends this. */
  onChange(listener: () => void): () => void {
    this.#emitter.on('change', listener);
    return () => this.#emitter.off('change', listener);
  }

  /** Calls back when Sentinels announce another primary, or a node has left the Cluster's. */
  onSwitch(listener: () => void): void {
    this.#emitter.on('switch', listener);
  }

  #reportChange(): void {
    this.#emitter.emit('change');
  }

  #dropNext(): void {
    this.#next?.end().client.disconnect();
    this.#next = null;
  }

  #about() {
    return { name: `evalgate-${this.role}`, timeoutMs: this.timeoutMs };
  }

  #messagesWith(opening: Opening) {
    return messageConnections(opening, this.#about(), () => this.connection.nodes());
  }

  #watchSentinels(opening: Opening): SentinelWatch {
    return new SentinelWatch({
      primary: opening.address.primary,
      connect: sentinelConnections(opening),
      timeoutMs: this.timeoutMs,
      onSwitch: () => {
        this.#emitter.emit('switch');
        this.connection.client.disconnect();
        this.subscriber.reopen();
        for (const blocking of this.#blocking.keys()) blocking.reopen();
      },
    });
  }

  #openWith(opening: Opening): (attempt: number) => Connection {
    return (attempt) => {
      const opened = openConnection(opening, this.#about(), attempt, {
        leavesReplica: (error) => this.#leavesReplica(error),
        onNodeFailure: (reason) => {
          if (this.connection === connection) this.setDown(reason);
        },
        onNodeLeft: (node) => {
          if (this.connection !== connection) return;
          this.subscriber.leave(node);
          this.#emitter.emit('switch');
        },
        onSilent: (buckets) => {
          if (this.connection !== connection) return;
          this.#silent = buckets;
          this.#reportChange();
        },
        sentinelFault: () => this.#sentinels.fault,
      });
      const ask = async (): Promise<void> => {
        await opened.ask();
        await this.#trial.run(connection);
      };
      const connection: Connection = { ...opened, ask };
      return connection;
    };
  }

  /**
   * Runs commands, for everything else. Rejects with NotSentError at once while Redis is down, and with RedisTimeoutError
   * after `timeoutMs` without an answer; then Redis counts as down until a probe is answered in time, so that nothing else
   * waits for it (R6: a request waits for Redis once, and for a bounded time). Rejects with ValueTooLargeError at once if
   * `largestBytes`, the size of the largest value that is sent, is more than Redis takes.
   *
   * ioredis's diagnostics channel names server and database, which does not distinguish the two roles if they share one
   * Redis; so commands are timed here.
   */
  async run<T>(send: (client: RedisClient) => Promise<T>, largestBytes = 0): Promise<T> {
    if (!this.values.takes(largestBytes)) throw new ValueTooLargeError(largestBytes);
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
      this.values.noteTaken(largestBytes);
      // One node of a Cluster says nothing of the others, and one command nothing of those that are refused.
      const isTried = this.#trial.refused === null && !this.#trial.isDue(this.connection);
      if (this.kind !== 'cluster' && isTried) this.answered();
      return reply;
    } catch (error) {
      if (error instanceof RedisTimeoutError) {
        report('timeout');
        this.setDown(error);
        for (const listener of this.#timeoutListeners) listener();
        throw error;
      }
      const reason = reasonOf(error);
      report(replyCode(error) === null ? 'lost' : 'refused');
      // The refusal of one value is no refusal of others.
      if (!this.values.learn(largestBytes, reason)) this.#noteRefusal(reason);
      throw reason;
    }
  }

  #noteRefusal(reason: Error): void {
    const wasRefused = this.#trial.refused !== null;
    this.#trial.note(reason, this.connection);
    // At once: what the trial finds too is over as soon as it is granted again.
    if (!wasRefused && this.#trial.refused !== null) this.ping().catch(() => undefined);
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
    this.#sentinels.close();
    for (const blocking of this.#blocking.keys()) blocking.close();
    this.connection.client.disconnect();
  }

  /**
   * Whether to connect again after an error reply: after a failover the old primary refuses writes, and the address may
   * lead to the new one. Not at each refusal: an address that goes on leading to a replica would only be lost and found,
   * many times a second. Sentinels that name a replica will soon name another one.
   */
  #leavesReplica(error: Error): boolean {
    const nowMs = performance.now();
    if (replyCode(error) !== 'READONLY') return false;
    const isNew = !super.isUp();
    if (this.kind !== 'sentinel' && (isNew || nowMs - this.#leftReplicaAtMs < LEAVE_REPLICA_EVERY_MS)) return false;
    this.#leftReplicaAtMs = nowMs;
    this.downReason = error;
    // Also of a command that was not sent by `run`.
    this.#trial.note(error, this.connection);
    return true;
  }
}
