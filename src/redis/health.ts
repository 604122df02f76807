/**
 * Whether a connection answers. A socket that stands says little: a frozen server keeps it open, and a network that went
 * away keeps it for minutes. So it is asked again and again.
 */
import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';

const PING_EVERY_MS = 250;
/** After so long without an answer the connection is dropped and a new one tried. */
const DROP_AFTER_MS = 3000;

interface HealthEvents {
  readonly up: [];
  readonly down: [reason: Error];
}

export class ConnectionHealth {
  readonly #client: Redis;
  readonly #events = new EventEmitter<HealthEvents>();
  readonly #timer: NodeJS.Timeout;
  /** Unknown until the first connection stands or fails. */
  #state: 'unknown' | 'up' | 'down' = 'unknown';
  #lastError: Error = new Error('Redis did not answer yet.');
  #isAsking = false;
  #answeredAtMs = 0;

  constructor(client: Redis) {
    this.#client = client;
    this.#events.setMaxListeners(0);
    client.on('error', (error: Error) => {
      this.#lastError = error;
    });
    client.on('ready', () => this.#answered());
    client.on('close', () => this.#setDown(this.#lastError));
    this.#timer = setInterval(() => void this.#ask(), PING_EVERY_MS).unref();
  }

  isUp(): boolean {
    return this.#state === 'up';
  }

  onUp(listener: () => void): () => void {
    this.#events.on('up', listener);
    return () => this.#events.off('up', listener);
  }

  onDown(listener: (reason: Error) => void): () => void {
    this.#events.on('down', listener);
    return () => this.#events.off('down', listener);
  }

  /** Ends the asking; listeners hear nothing more. */
  close(): void {
    clearInterval(this.#timer);
    this.#events.removeAllListeners();
    this.#state = 'down';
  }

  /** Rejects never. One question at a time; the command's own timeout bounds it. */
  async #ask(): Promise<void> {
    if (this.#isAsking || this.#client.status !== 'ready') return;
    this.#isAsking = true;
    try {
      await this.#client.ping();
      if (this.#client.status === 'ready') this.#answered();
    } catch (error) {
      this.#setDown(error instanceof Error ? error : new Error(String(error)));
      const isReady = this.#client.status === 'ready';
      if (isReady && performance.now() - this.#answeredAtMs > DROP_AFTER_MS) this.#client.disconnect(true);
    } finally {
      this.#isAsking = false;
    }
  }

  #answered(): void {
    this.#answeredAtMs = performance.now();
    this.#lastError = new Error('The connection to Redis was closed.');
    if (this.#state === 'up') return;
    this.#state = 'up';
    this.#events.emit('up');
  }

  #setDown(reason: Error): void {
    if (this.#state === 'down') return;
    this.#state = 'down';
    this.#events.emit('down', reason);
  }
}
