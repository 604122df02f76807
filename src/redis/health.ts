/**
 * A connection to Redis that lasts, and whether Redis answers on it. A client that ends without being closed, at whatever
 * stage of its connection, is followed by a new one within a second: ioredis itself never connects again, since it gives up
 * in some of them for good. An open socket says little: a frozen server keeps it open, and a lost network keeps it for
 * minutes. So each connection is probed in the background, and nothing else has to wait to find out.
 */
import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { ConnectionLostError, HandshakeError, RedisTimeoutError, replyCode } from './errors.ts';
import { SingleFlight } from '../time/single-flight.ts';
import { systemTimers, withDeadline } from '../time/timers.ts';
import { beforeDeadline } from './request-wait.ts';

/** While Redis answers. Each answer puts the next probe off, so a connection in use is not probed. */
const PROBE_EVERY_MS = 1000;
/** While it does not: so soon it is noticed that it does again. */
const RETRY_EVERY_MS = 250;
/** After so long without an answer the connection is dropped and a new one tried. */
export const DROP_AFTER_MS = 3000;
/** A client that is neither ready nor has ended by then is given up. Each of its own waits is shorter. */
const OPEN_WITHIN_MS = 10_000;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1000;

/** The pause before a new connection: doubles up to a second; the random half keeps a fleet from coming back all at once. */
export function retryDelayMs(attempt: number): number {
  const boundMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 10));
  return Math.ceil(boundMs * (0.5 + Math.random() / 2));
}

/** One client of ioredis, which connects once. */
export interface FollowedConnection {
  readonly client: Pick<EventEmitter, 'on'> & Pick<Redis, 'disconnect'> & { readonly status: string };
  /** Resolves if Redis answers, all of it; rejects, in bounded time, if it does not. */
  readonly ask: () => Promise<void>;
  /** Why a client ended that reports no reason; null if nothing is found wrong. Never rejects, and takes bounded time. */
  readonly findFault?: () => Promise<Error | null>;
}

/** A Redis, a Cluster or the present one of several connections: up or down, and who is notified of a change. */
export class ConnectionHealth<C extends FollowedConnection = FollowedConnection> {
  readonly #events = new EventEmitter<{ up: []; down: [reason: Error] }>().setMaxListeners(0);
  protected readonly timeoutMs: number;
  #open: ((attempt: number) => C) | null = null;
  #connection: C | null = null;
  /** How many connections have been opened since Redis last answered. */
  #attempts = 0;
  /** The next connection is opened then, or the present one is given up if it is not ready. */
  #opening: NodeJS.Timeout | undefined;
  /** Unknown until Redis answers, or fails to, for the first time. */
  #state: 'unknown' | 'up' | 'down' = 'unknown';
  /** Until the next connection has been tried, after one was lost on which Redis answered. */
  #retry: PromiseWithResolvers<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  readonly #probing = new SingleFlight<void>();
  /** Null once it has answered: the next loss of the connection then says only that. */
  #downReason: Error | null = new ConnectionLostError('Redis did not answer yet.');

  /** `timeoutMs`: how long a command may take. */
  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs;
  }

  /** Whether Redis answered lately. False until the first connection stands. */
  isUp(): boolean {
    return this.#state === 'up';
  }

  /** Why it is down: the last error, which can be another one than that which `onDown` was called with. */
  get downReason(): Error {
    return this.#downReason ?? new ConnectionLostError();
  }

  protected set downReason(reason: Error) {
    this.#downReason = reason;
  }

  /** False only if it is known that Redis does not answer: a lost connection says nothing until the next one was tried. */
  mayAnswer(): boolean {
    return this.isUp() || this.#retry !== null;
  }

  /** Resolves once the connection after a lost one has answered or failed, or has done neither in the time of a command. */
  async retried(): Promise<void> {
    if (this.#retry !== null) await withDeadline(this.#retry.promise, this.timeoutMs, systemTimers, () => undefined);
  }

  /** Calls back at each change to up; returns a function that ends this. */
  onUp(listener: () => void): () => void {
    this.#events.on('up', listener);
    return () => this.#events.off('up', listener);
  }

  /** Calls back at each change to down, and once if the first connection fails; returns a function that ends this. */
  onDown(listener: (reason: Error) => void): () => void {
    this.#events.on('down', listener);
    return () => this.#events.off('down', listener);
  }

  /** Resolves if Redis answers; rejects if it does not, in bounded time. Calls at the same time share one probe. */
  ping(): Promise<void> {
    return this.#probing.join('probe', async (isCurrent) => {
      try {
        await this.#probe();
      } finally {
        if (isCurrent()) this.#probeLater();
      }
    });
  }

  /** Opens a connection, and a new one whenever it ends. `open` gets the number of connections since Redis last answered. */
  protected keepOpen(open: (attempt: number) => C): void {
    this.#open = open;
    this.#openNext();
  }

  /** Goes over to a connection that stands already, and opens those after it in that way. The one before goes on. */
  protected goOver(connection: C, open: (attempt: number) => C): void {
    this.#open = open;
    this.#follow(connection);
  }

  /** The present connection; it may have ended, while the next one is yet to be opened. Throws before `keepOpen`. */
  protected get connection(): C {
    if (this.#connection === null) throw new Error('No connection to Redis was opened.');
    return this.#connection;
  }

  /** Redis has answered something else in time: no probe is needed so soon. */
  protected answered(): void {
    if (this.#state === 'up') this.#timer?.refresh();
  }

  /** Ends the probes, opens nothing more and notifies nobody any more. The connection goes on. */
  protected stop(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#opening);
    this.#events.removeAllListeners();
    this.#open = null;
    this.#state = 'down';
    this.#endRetry();
  }

  /** Whether commands can be sent. */
  protected isReady(): boolean {
    return this.#connection?.client.status === 'ready';
  }

  /** `isLost`: whether the connection was lost, so that the next one will show whether Redis answers. */
  protected setDown(reason: Error, isLost = reason instanceof ConnectionLostError): void {
    this.#downReason = reason;
    if (this.#state === 'down') return;
    if (isLost && this.#state === 'up') this.#retry = Promise.withResolvers();
    this.#state = 'down';
    this.#probeLater();
    this.#events.emit('down', reason);
  }

  #openNext(): void {
    if (this.#open === null) return;
    this.#attempts += 1;
    this.#follow(this.#open(this.#attempts));
  }

  /** Goes by what this connection reports from now on, and no more by the one before. */
  #follow(connection: C): void {
    const { client } = connection;
    clearTimeout(this.#opening);
    this.#connection = connection;
    // A probe of the connection before says nothing of this one, and may wait for its answer in vain.
    this.#probing.forgetAll();
    this.#probeLater();
    const isFollowed = (): boolean => this.#isFollowed(connection);
    let wasReady = client.status === 'ready';
    /** The reply of Redis while it refused this connection: more than that writing to it failed. */
    let refusal: Error | null = null;
    const note = (error: Error): void => {
      if (!isFollowed()) return;
      // If all nodes fail at once, the last node's error says more.
      const reason = reasonOf('lastNodeError' in error ? error.lastNodeError : error);
      if (!wasReady && replyCode(reason) !== null) refusal = new HandshakeError('CONNECT', 0, reason);
      this.#downReason = refusal ?? reason;
    };
    const end = async (): Promise<void> => {
      if (!isFollowed()) return;
      const fault = refusal ?? (await connection.findFault?.()) ?? null;
      if (!isFollowed()) return;
      if (fault !== null) this.#downReason = fault;
      // If nothing is found wrong with the first one, the second may do.
      const isUnexplained = !wasReady && this.downReason instanceof ConnectionLostError;
      if (!isUnexplained || this.#attempts > 1) this.setDown(this.downReason);
      // None since Redis last answered: it is the lost connection itself.
      if (this.#attempts > 0) this.#endRetry();
      this.#later(() => this.#openNext(), retryDelayMs(this.#attempts));
    };
    for (const event of ['error', 'node error']) client.on(event, note);
    client.on('ready', () => {
      if (!isFollowed()) return;
      wasReady = true;
      clearTimeout(this.#opening);
      this.#probeNow();
    });
    client.on('-node', () => {
      if (isFollowed()) this.#probeNow();
    });
    client.on('close', () => {
      if (isFollowed() && this.#state === 'up') this.setDown(this.downReason, true);
    });
    client.on('end', () => void end());
    const giveUpAfter = (delayMs: number): void => {
      this.#later(() => {
        client.disconnect();
        void end();
      }, delayMs);
    };
    // The commands that ioredis sends by itself have no deadline.
    client.on('connect', () => {
      if (isFollowed() && !wasReady) giveUpAfter(DROP_AFTER_MS);
    });
    if (client.status === 'end') void end();
    else if (!wasReady) giveUpAfter(OPEN_WITHIN_MS);
  }

  #isFollowed(connection: C): boolean {
    return this.#connection === connection && this.#open !== null;
  }

  #later(run: () => void, delayMs: number): void {
    clearTimeout(this.#opening);
    this.#opening = setTimeout(run, delayMs).unref();
  }

  #probeLater(): void {
    clearTimeout(this.#timer);
    if (this.#open === null) return;
    const delayMs = this.#state === 'up' ? PROBE_EVERY_MS : RETRY_EVERY_MS;
    this.#timer = setTimeout(() => this.#probeNow(), delayMs).unref();
  }

  #probeNow(): void {
    // A failure is reported by the change to down.
    this.ping().catch(() => undefined);
  }

  async #probe(): Promise<void> {
    const connection = this.#connection;
    // How a connection attempt ends is reported by its events.
    if (connection === null || !this.isReady()) throw this.downReason;
    const retry = this.#retry;
    let sentAtMs = performance.now();
    const isLate = (): boolean => performance.now() - sentAtMs > this.timeoutMs;
    try {
      await connection.ask();
      // The first question on a connection is many commands in turn: its time says nothing of that of one.
      if (this.#state === 'down' && isLate()) {
        sentAtMs = performance.now();
        await connection.ask();
      }
    } catch (error) {
      let reason = reasonOf(error);
      // The error of a connection says more than that of a command that was given up with it.
      const isGivenUp = reason instanceof ConnectionLostError;
      if (reason instanceof RedisTimeoutError || (isGivenUp && isLate()))
        reason = new RedisTimeoutError(this.timeoutMs);
      else if (isGivenUp) reason = this.downReason;
      // Another connection may have taken its place.
      if (this.#isFollowed(connection)) {
        this.setDown(reason, isGivenUp);
        // If a Cluster has lost a node its client stays, and the next probe is the next try.
        if (!isGivenUp || (retry !== null && this.isReady())) this.#endRetry();
      }
      throw reason;
    }
    if (!this.#isFollowed(connection)) return;
    this.#downReason = null;
    if (!this.isReady()) throw this.downReason;
    // It stays down as long as each command would time out once more (R6: no request waits for a Redis that was late once).
    if (this.#state === 'down' && isLate()) {
      this.#downReason = new RedisTimeoutError(this.timeoutMs);
      throw this.#downReason;
    }
    this.#attempts = 0;
    if (this.#state === 'up') return;
    this.#state = 'up';
    this.#endRetry();
    this.#events.emit('up');
  }

  #endRetry(): void {
    this.#retry?.resolve();
    this.#retry = null;
  }
}

/** Whether a connection answers that is to take the place of another one. */
export class ConnectionTrial<C extends FollowedConnection> extends ConnectionHealth<C> {
  constructor(open: (attempt: number) => C, timeoutMs: number) {
    super(timeoutMs);
    this.keepOpen(open);
  }

  /** Ends the trial. Returns the connection, which goes on. */
  end(): C {
    this.stop();
    return this.connection;
  }
}

/** Asks one connection, and drops it when it has not answered for too long. */
export function droppedIfSilent(
  client: FollowedConnection['client'],
  ask: () => Promise<unknown>,
): () => Promise<void> {
  /** When the first question was sent that has had no answer; null if the last one was answered. */
  let silentSinceMs: number | null = null;
  return async () => {
    const sentAtMs = performance.now();
    try {
      await beforeDeadline(ask(), DROP_AFTER_MS);
      silentSinceMs = null;
    } catch (error) {
      silentSinceMs ??= sentAtMs;
      // A refusal is an answer too.
      if (replyCode(error) !== null) silentSinceMs = null;
      const isSilent = silentSinceMs !== null && performance.now() - silentSinceMs >= DROP_AFTER_MS;
      if (client.status === 'ready' && isSilent) client.disconnect();
      throw error;
    }
  };
}

/** The error, without the texts of ioredis's own errors, which are about its options. */
export function reasonOf(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  // Neither Redis, nor the system, nor evalgate: ioredis itself gave a command up, as its connection was lost.
  const isOfClient = !('code' in error) && (error.name === 'Error' || error.name === 'MaxRetriesPerRequestError');
  return isOfClient ? new ConnectionLostError() : error;
}
