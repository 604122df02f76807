/**
 * The connections to the store, kept alive between calls, but not for ever: a name is looked up only for a new connection,
 * so calls of a busy gateway would never follow a store that moves.
 *
 * All connections of one time share an agent. When its time is over, further calls use the next one, and its connections
 * are closed once the calls on them have ended.
 */
import { Agent as HttpAgent, type AgentOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Clock } from '../time/clock.ts';

/** For both schemes, as got takes them. */
export interface Agents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

interface Generation {
  readonly agents: Agents;
  /** On the clock that is never set back. */
  readonly untilMs: number;
  calls: number;
}

export interface ConnectionsOptions {
  readonly maxConnections: number;
  readonly connectionMaxAgeMs: number;
  readonly clock: Clock;
}

/** Below the shortest idle time that common servers allow (5 s), so that a call seldom meets a connection being closed. */
const IDLE_TIMEOUT_MS = 4000;
/** By which share a generation ends sooner, at random, so that a fleet does not connect anew in one moment. */
const JITTER = 0.1;

export class Connections {
  readonly #options: ConnectionsOptions;
  #current: Generation | null = null;
  readonly #retired = new Set<Generation>();

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** Makes a call on a kept connection, or on a new one that is then kept. */
  async use<R>(call: (agents: Agents) => Promise<R>): Promise<R> {
    const generation = this.#generation();
    generation.calls += 1;
    try {
      return await call(generation.agents);
    } finally {
      generation.calls -= 1;
      if (generation.calls === 0 && this.#retired.delete(generation)) destroy(generation);
    }
  }

  close(): void {
    for (const generation of [this.#current, ...this.#retired]) if (generation !== null) destroy(generation);
    this.#retired.clear();
  }

  #generation(): Generation {
    const nowMs = this.#options.clock.nowMicros() / 1000;
    const current = this.#current;
    if (current !== null && nowMs < current.untilMs) return current;
    if (current !== null && current.calls === 0) destroy(current);
    else if (current !== null) this.#retired.add(current);
    const { maxConnections, connectionMaxAgeMs } = this.#options;
    const agents = agentsOf({
      keepAlive: true,
      maxSockets: maxConnections,
      maxFreeSockets: maxConnections,
      timeout: IDLE_TIMEOUT_MS,
      scheduling: 'lifo',
    });
    this.#current = { agents, untilMs: nowMs + connectionMaxAgeMs * (1 - JITTER * Math.random()), calls: 0 };
    return this.#current;
  }
}

/** For one call on a connection of its own. */
export function newConnection(): Agents {
  return agentsOf({});
}

function agentsOf(options: AgentOptions): Agents {
  return { http: new HttpAgent(options), https: new HttpsAgent(options) };
}

function destroy({ agents }: Generation): void {
  agents.http.destroy();
  agents.https.destroy();
}
