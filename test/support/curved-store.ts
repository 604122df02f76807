/**
 * A store whose capacity is known: how long a call takes depends on how many are under way, and above so many it answers 503.
 * It has every evaluation that is asked for, and lists nothing.
 */
import type { ServerResponse } from 'node:http';
import { anEvaluation } from './records.ts';
import { createStoreServer, sendError, sendJson, type StoreServer } from './store-server.ts';

export interface Capacity {
  /** By how many calls are under way, the new one included. */
  readonly latencyMs: (inFlight: number) => number;
  readonly refusesAbove?: number;
}

/** The store's figures from `measure` on. */
export interface Measured {
  readonly seconds: number;
  readonly answered: number;
  readonly refused: number;
  /** On average. */
  readonly inFlight: number;
}

/** As fast as `latencyMs` for up to `capacity` calls at a time; beyond, each takes longer by as much as there are more. */
export function slowerBeyond(capacity: number, latencyMs = 50): Capacity['latencyMs'] {
  return (inFlight) => latencyMs * Math.max(1, inFlight / capacity);
}

export class CurvedStore {
  readonly #server: StoreServer;
  #capacity: Capacity;
  #inFlight = 0;
  #since = { atMs: performance.now(), answered: 0, refused: 0, inFlightMs: 0 };
  #changedAtMs = performance.now();

  private constructor(server: StoreServer, capacity: Capacity) {
    this.#server = server;
    this.#capacity = capacity;
    server.override(/\/internal\/v1\/evaluations\/[^/]+$/, (request, response) => {
      this.#count(1);
      response.once('close', () => this.#count(-1));
      const { latencyMs, refusesAbove = Number.POSITIVE_INFINITY } = this.#capacity;
      if (this.#inFlight > refusesAbove) {
        this.#since.refused += 1;
        sendError(response, 503, 'UNAVAILABLE');
        return;
      }
      const id = decodeURIComponent(request.url?.split('/').at(-1) ?? '');
      setTimeout(
        () => this.#answer(response, () => sendJson(request, response, anEvaluation({ _id: id }))),
        latencyMs(this.#inFlight),
      );
    });
  }

  static async start(capacity: Capacity): Promise<CurvedStore> {
    return new CurvedStore(await createStoreServer(), capacity);
  }

  get env() {
    return { UPSTREAM_URL: this.#server.url, UPSTREAM_TOKEN: this.#server.token };
  }

  become(capacity: Capacity): void {
    this.#capacity = capacity;
  }

  /** Calls `during`, and returns what the store did meanwhile. */
  async measure<R>(during: () => Promise<R>): Promise<readonly [R, Measured]> {
    this.#count(0);
    this.#since = { atMs: performance.now(), answered: 0, refused: 0, inFlightMs: 0 };
    const result = await during();
    this.#count(0);
    const { atMs, answered, refused, inFlightMs } = this.#since;
    const ms = performance.now() - atMs;
    return [result, { seconds: ms / 1000, answered, refused, inFlight: inFlightMs / ms }];
  }

  async close(): Promise<void> {
    await this.#server.close();
  }

  #answer(response: ServerResponse, send: () => void): void {
    if (response.destroyed) return;
    this.#since.answered += 1;
    send();
  }

  #count(change: number): void {
    const nowMs = performance.now();
    this.#since.inFlightMs += this.#inFlight * (nowMs - this.#changedAtMs);
    this.#changedAtMs = nowMs;
    this.#inFlight += change;
    // No test looks at them, and there are many.
    if (this.#server.requests.length > 1000) this.#server.forget();
  }
}
