/**
 * A whole gateway for a test: the real one, on free ports, in front of a scripted store, with a clock that the test moves.
 * Every response is held against the OpenAPI document unless the test says that it can't be.
 *
 *     const gateway = await startTestGateway();
 *     gateway.store.put({ evaluations: [anEvaluation()] });
 *     const key = await gateway.issueKey({ scopes: ['reports.read'] });
 *     const answer = await gateway.get(`/v1/workspaces/${WORKSPACE_A}/reports`, { key });
 *     ... await gateway.close();
 */
import { type Agent, request, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { z } from 'zod';
import { loadConfig } from '../../src/config/load.ts';
import { type Gateway, startGateway, type Workers } from '../../src/gateway.ts';
import type { Scope } from '../../src/keys/key.ts';
import { createLogger } from '../../src/log/logger.ts';
import { systemTimers, type Timers } from '../../src/timers.ts';
import { ManualClock } from './manual-clock.ts';
import { createResponseChecker, type ResponseChecker } from './openapi-check.ts';
import { WORKSPACE_A } from './records.ts';
import { createStoreServer, type StoreServer } from './store-server.ts';

/** Without the breaker: the store of a test fails on purpose, and the clock of a test stands still. */
const SETTINGS_FILE = join(import.meta.dirname, 'gateway.yaml');

export interface Ask {
  readonly key?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whose connections are used, and kept; without one each request has a connection of its own. */
  readonly agent?: Agent;
  /** Set if the response is of no documented operation (a 404 for an unknown path, say), or a check of that. */
  readonly isUndocumented?: boolean | ((reply: Reply) => boolean);
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** As it was sent: compressed if it was. */
  readonly bytes: Buffer;
  /** Decoded. */
  readonly text: string;
  /** The parsed body; undefined if it is no JSON. */
  readonly json: unknown;
}

/** An answer read by hand, so that nothing in it can be overlooked. */
export interface RawReply {
  /** 0 if the connection was closed without an answer. */
  readonly status: number;
  /** By lower-case names; values of repeated ones are joined by a line feed. */
  readonly headers: Readonly<Record<string, string>>;
  /** All that follows the empty line. */
  readonly body: string;
}

/** A request to the admin listener as it goes out. */
export interface AdminRequest {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface KeyRequest {
  readonly scopes?: readonly Scope[];
  readonly workspaceIds?: readonly string[];
  readonly perMinute?: number;
  readonly perHour?: number;
  /** ISO 8601. */
  readonly expiresAt?: string;
  readonly name?: string;
}

const issuedSchema = z.object({ key: z.object({ keyId: z.string() }), token: z.string() });

export class TestGateway {
  readonly store: StoreServer;
  readonly clock: ManualClock;
  /** Every line of the log so far, as JSON. */
  readonly logLines: readonly string[];
  readonly #gateway: Gateway;
  readonly #checker: ResponseChecker;
  readonly #ownsStore: boolean;
  readonly #env: Readonly<Record<string, string>>;

  constructor(parts: {
    env: Readonly<Record<string, string>>;
    store: StoreServer;
    ownsStore: boolean;
    clock: ManualClock;
    logLines: readonly string[];
    gateway: Gateway;
    checker: ResponseChecker;
  }) {
    this.#env = parts.env;
    this.store = parts.store;
    this.#ownsStore = parts.ownsStore;
    this.clock = parts.clock;
    this.logLines = parts.logLines;
    this.#gateway = parts.gateway;
    this.#checker = parts.checker;
  }

  get publicUrl(): string {
    return this.#gateway.publicUrl;
  }

  get adminUrl(): string {
    return this.#gateway.adminUrl;
  }

  /** One request to the public listener. The path goes out exactly as it is given. */
  async get(path: string, ask: Ask = {}): Promise<Reply> {
    const { key, method = 'GET', headers = {}, agent = null, isUndocumented = false } = ask;
    const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const reply = await send(this.publicUrl, { method, path, headers: { ...authorization, ...headers }, agent });
    const { status, text: body } = reply;
    const isExempt = typeof isUndocumented === 'boolean' ? isUndocumented : isUndocumented(reply);
    if (!isExempt) this.#checker.check({ method, path, status, headers: reply.headers, body });
    return reply;
  }

  /** Sends bytes to the public listener that no HTTP client would send, and gives what comes until the connection ends. */
  raw(bytes: string | Buffer): Promise<RawReply> {
    return sendRaw(this.publicUrl, bytes);
  }

  /** One request to the admin listener; a body goes out as JSON, and the first of ADMIN_TOKEN with it. */
  admin(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    const [token] = (this.#env['ADMIN_TOKEN'] ?? '').split(',').map((pair) => pair.slice(pair.indexOf('=') + 1));
    return this.adminRaw(method, path, {
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** One request to the admin listener with these headers and this body, and no others. */
  adminRaw(method: string, path: string, { headers = {}, body }: AdminRequest = {}): Promise<Reply> {
    return send(this.adminUrl, { method, path, headers, ...(body === undefined ? {} : { body }) });
  }

  /** Sends bytes to the admin listener that no HTTP client would send, and returns what comes until the connection ends. */
  adminBytes(bytes: string | Buffer): Promise<RawReply> {
    return sendRaw(this.adminUrl, bytes);
  }

  /** Reads the configuration again, with these variables over those of the start. Returns what needs a restart. */
  reload(env: Readonly<Record<string, string>>): readonly string[] {
    return this.#gateway.reload(loadConfig({ env: { ...this.#env, ...env } }));
  }

  /** Issues a key through the admin listener, by default one with every scope in WORKSPACE_A; returns its token. */
  async issueKey(wanted: KeyRequest = {}): Promise<string> {
    return (await this.issue(wanted)).token;
  }

  async issue(wanted: KeyRequest = {}): Promise<{ readonly keyId: string; readonly token: string }> {
    const body = {
      name: 'test',
      workspaceIds: [WORKSPACE_A],
      scopes: ['reports.read', 'calls.read', 'coaching.read'],
      ...wanted,
    };
    const reply = await this.admin('POST', '/api/keys', body);
    if (reply.status !== 201) throw new Error(`no key was issued: ${reply.text}`);
    const { key, token } = issuedSchema.parse(reply.json);
    return { keyId: key.keyId, token };
  }

  async close(): Promise<void> {
    await this.#gateway.stop(0);
    // So that the next gateway of the file is traced only if it says so.
    for (const name of otelVariables(this.#env)) delete process.env[name];
    if (this.#ownsStore) await this.store.close();
  }
}

export interface TestGatewayOptions {
  /** Over the test's own: free ports, the scripted store, a log that is captured. */
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: ManualClock;
  /** Real ones unless given. */
  readonly timers?: Timers;
  /** A store that other gateways stand in front of too. It stays its owner's to close. */
  readonly store?: StoreServer;
  /** The gateway is then one of these workers. */
  readonly workers?: Workers;
}

export async function startTestGateway({
  env = {},
  clock = new ManualClock(),
  timers = systemTimers,
  store: shared,
  workers,
}: TestGatewayOptions = {}): Promise<TestGateway> {
  const store = shared ?? (await createStoreServer());
  const logLines: string[] = [];
  const whole = {
    PORT: '0',
    ADMIN_PORT: '0',
    UPSTREAM_URL: store.url,
    UPSTREAM_TOKEN: store.token,
    CONFIG_FILE: SETTINGS_FILE,
    ...env,
  };
  const loaded = loadConfig({ env: whole });
  // OpenTelemetry's SDK reads the environment of the process, and there is one SDK in a process.
  for (const name of otelVariables(env)) process.env[name] = env[name];
  const logger = createLogger({
    level: loaded.config.log.level,
    // Several lines may come in one piece.
    destination: { write: (text) => void logLines.push(...text.split(/(?<=\n)/)) },
  });
  const gateway = await startGateway(loaded, { logger, clock, timers, ...(workers && { workers }) });
  const document = await send(gateway.publicUrl, { method: 'GET', path: '/openapi.json', headers: {} });
  const checker = createResponseChecker(z.record(z.string(), z.unknown()).parse(document.json));
  return new TestGateway({ env: whole, store, ownsStore: shared === undefined, clock, logLines, gateway, checker });
}

function otelVariables(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.keys(env).filter((name) => name.startsWith('OTEL_'));
}

interface Outgoing {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly agent?: Agent | null;
}

function send(baseUrl: string, { method, path, headers, body, agent }: Outgoing): Promise<Reply> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, method, path, headers, agent: agent ?? false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const text = decode(bytes, response.headers['content-encoding']).toString('utf8');
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes,
          text,
          json: jsonOf(text),
        });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

function decode(bytes: Buffer, coding: string | undefined): Buffer {
  if (bytes.length === 0) return bytes;
  if (coding === 'br') return brotliDecompressSync(bytes);
  if (coding === 'zstd') return zstdDecompressSync(bytes);
  if (coding === 'gzip') return gunzipSync(bytes);
  return bytes;
}

function sendRaw(baseUrl: string, bytes: string | Buffer): Promise<RawReply> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    // A server that has heard enough may reset the connection: what it had said by then is its answer.
    socket.on('error', () => {});
    socket.on('close', () => resolve(parseRaw(Buffer.concat(chunks).toString('utf8'))));
  });
}

function parseRaw(text: string): RawReply {
  const end = text.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = text.slice(0, Math.max(0, end)).split('\r\n');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(': ');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 2);
    headers[name] = headers[name] === undefined ? value : `${headers[name]}\n${value}`;
  }
  return { status: Number(statusLine.split(' ')[1] ?? 0), headers, body: text.slice(end + 4) };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
