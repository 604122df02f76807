/** A real admin listener on a free loopback port, and a client that can send what browsers and attackers send. */
import { type IncomingHttpHeaders, request } from 'node:http';
import { z } from 'zod';
import type { AdminOptions } from '../../../src/admin/app.ts';
import { createAudit } from '../../../src/admin/audit.ts';
import { Pulse } from '../../../src/admin/dashboard/pulse.ts';
import { startAdminServer } from '../../../src/admin/server.ts';
import { createRequestLimiter } from '../../../src/keys/request-limiter.ts';
import { createMemoryRegistry } from '../../../src/keys/memory-registry.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { createInsight } from '../../support/insight.ts';
import { createCacheRig } from './cache-rig.ts';

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly fields: object;
  readonly message: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: unknown;
}

export interface Sent {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export const TOKEN = 'correct-horse';
export const WORKSPACE = '0b6c1f5e-2d63-4d0c-9a52-3f7f1f6f0a11';
export const START = '2026-01-15T12:00:00.000Z';

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Sends one request as it is told to, on a connection of its own. */
export function send(port: number, method: string, path: string, { headers = {}, body }: Sent = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parsed(text) });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

export async function startAdmin(overrides: Partial<AdminOptions> = {}) {
  const clock = new ManualClock(Date.parse(START));
  const log: LogLine[] = [];
  const registry = createMemoryRegistry({ clock });
  const audit = createAudit({ clock, capacity: 100, sink: () => {} });
  const options: AdminOptions = {
    tokens: [],
    wrongTokens: createRequestLimiter({ name: 'admin-tokens', points: 1000, windowSeconds: 60, redis: null }),
    addressOf: () => '127.0.0.1',
    allowedHosts: [],
    isReady: () => ({ status: 'ready', dependencies: [] }),
    registry,
    cache: createCacheRig(clock).controls,
    insight: createInsight(clock),
    pulse: new Pulse(clock),
    config: () => ({ admin: { port: 8081 } }),
    metrics: { contentType: 'text/plain; version=0.0.4; charset=utf-8', render: async () => 'evalgate_up 1\n' },
    audit,
    clock,
    log: {
      info: (fields, message) => log.push({ level: 'info', fields, message }),
      warn: (fields, message) => log.push({ level: 'warn', fields, message }),
      error: (fields, message) => log.push({ level: 'error', fields, message }),
    },
    ...overrides,
  };
  const server = await startAdminServer(options, { host: '127.0.0.1', port: 0 });
  const { port } = server;
  return {
    port,
    clock,
    log,
    registry,
    audit,
    close: () => server.close(0),
    get: (path: string, headers: Readonly<Record<string, string>> = {}) => send(port, 'GET', path, { headers }),
    /** Any method, with a JSON body where one is given. */
    call: (method: string, path: string, value?: unknown, headers: Readonly<Record<string, string>> = {}) =>
      send(port, method, path, {
        headers: value === undefined ? headers : { 'content-type': 'application/json', ...headers },
        ...(value === undefined ? {} : { body: JSON.stringify(value) }),
      }),
  };
}

export type RunningAdmin = Awaited<ReturnType<typeof startAdmin>>;

/** The message of `{error: {message}}`, which must be the whole body. */
export function messageOf(answer: Answer): string {
  return z.strictObject({ error: z.strictObject({ message: z.string() }) }).parse(answer.json).error.message;
}
