/**
 * Whether a connection answers. A socket that stands says little: a frozen server keeps it open, and a network that went
 * away keeps it for minutes. So it is asked again and again.
 */
import type { Redis } from 'ioredis';
import { sentinelFault } from './sentinels.ts';
import { UpDown } from './up-down.ts';

export const ASK_EVERY_MS = 250;
/** After so long without an answer the connection is dropped and a new one tried. */
export const DROP_AFTER_MS = 3000;

/** Whether a Redis answers. */
export type LinkHealth = Pick<UpDown, 'isUp' | 'onUp' | 'onDown' | 'close'>;

export class ConnectionHealth implements LinkHealth {
  readonly #client: Redis;
  readonly #state = new UpDown();
  readonly #timer: NodeJS.Timeout;
  #lastError: Error = new Error('Redis did not answer yet.');
  /** Of the Sentinel that was asked last. */
  #sentinelError: Error | null = null;
  #isAsking = false;
  #answeredAtMs = 0;

  constructor(client: Redis) {
    this.#client = client;
    client.on('error', (error: Error) => {
      this.#lastError = sentinelFault(error, this.#sentinelError);
      // Sentinels that can't name the primary: there is nothing yet that could close.
      if (client.status === 'connecting') this.#state.setDown(this.#lastError);
    });
    client.on('sentinelError', (error: Error) => {
      this.#sentinelError = error;
    });
    client.on('ready', () => this.#answered());
    client.on('close', () => this.#state.setDown(this.#lastError));
    this.#timer = setInterval(() => void this.#ask(), ASK_EVERY_MS).unref();
  }

  isUp(): boolean {
    return this.#state.isUp();
  }

  onUp(listener: () => void): () => void {
    return this.#state.onUp(listener);
  }

  onDown(listener: (reason: Error) => void): () => void {
    return this.#state.onDown(listener);
  }

  /** Ends the asking; listeners hear nothing more. */
  close(): void {
    clearInterval(this.#timer);
    this.#state.close();
  }

  /** Rejects never. One question at a time; the command's own timeout bounds it. */
  async #ask(): Promise<void> {
    if (this.#isAsking || this.#client.status !== 'ready') return;
    this.#isAsking = true;
    try {
      await this.#client.ping();
      if (this.#client.status === 'ready') this.#answered();
    } catch (error) {
      this.#state.setDown(error instanceof Error ? error : new Error(String(error)));
      const isReady = this.#client.status === 'ready';
      if (isReady && performance.now() - this.#answeredAtMs > DROP_AFTER_MS) this.#client.disconnect(true);
    } finally {
      this.#isAsking = false;
    }
  }

  #answered(): void {
    this.#answeredAtMs = performance.now();
    this.#lastError = new Error('The connection to Redis was closed.');
    this.#state.setUp();
  }
}
