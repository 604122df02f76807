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
import { readFileSync } from 'node:fs';
import { Agent, request, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { z } from 'zod';
import { loadConfig } from '../../src/config/load.ts';
import { startGateway } from '../../src/gateway.ts';
import type { Workers } from '../../src/telemetry/readiness.ts';
import type { Scope } from '../../src/domain/vocabulary.ts';
import { createLogger } from '../../src/log/logger.ts';
import { systemTimers, type Timers } from '../../src/time/timers.ts';
import { openFolder } from './files.ts';
import { ManualClock } from './manual-clock.ts';
import { checkerOf, jsonOf } from './openapi-check.ts';
import { WORKSPACE_A } from './records.ts';
import { createStoreServer, type StoreServer } from './store-server.ts';

/** Without the breaker: the store of a test fails on purpose, and the clock of a test stands still. */
export const TEST_CONFIG = readFileSync(join(import.meta.dirname, 'gateway.yaml'), 'utf8');

export interface Ask {
  readonly key?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whose connections are used; false for a connection of its own, undefined for one of those that are kept. */
  readonly agent?: Agent | false | undefined;
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

export interface AdminRequest {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | undefined;
}

export interface KeyRequest {
  readonly scopes?: readonly Scope[];
  readonly workspaceIds?: readonly string[];
  readonly perMinute?: number;
  readonly perHour?: number;
  readonly expiresAt?: string;
  readonly from?: readonly string[];
  readonly name?: string;
}

const issuedSchema = z.object({ key: z.object({ keyId: z.string() }), token: z.string() });

export type TestGateway = Awaited<ReturnType<typeof startTestGateway>>;

export interface TestGatewayOptions {
  /** Over the test's own: free ports, the scripted store, a log that is captured. */
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: ManualClock;
  /** The text of its configuration file; without one, that of `gateway.yaml`. */
  readonly config?: string;
  /** Real ones unless given. */
  readonly timers?: Timers;
  /** A store that other gateways stand in front of too. It stays its owner's to close. */
  readonly store?: StoreServer;
  /** The gateway is then one of these workers. */
  readonly workers?: Workers;
}

export async function startTestGateway({
  env: overrides = {},
  config,
  clock = new ManualClock(),
  timers = systemTimers,
  store: shared,
  workers,
}: TestGatewayOptions = {}) {
  const store = shared ?? (await createStoreServer());
  const folder = openFolder();
  /** Every line of the log so far, as JSON. */
  const logLines: string[] = [];
  const env: Readonly<Record<string, string>> = {
    PORT: '0',
    ADMIN_PORT: '0',
    UPSTREAM_URL: store.url,
    UPSTREAM_TOKEN: store.token,
    CONFIG_FILE: folder.write('config.yaml', config ?? TEST_CONFIG),
    ...overrides,
  };
  const loaded = loadConfig({ env });
  // OpenTelemetry's SDK reads the environment of the process, and there is one SDK in a process.
  const otelVariables = Object.keys(env).filter((name) => name.startsWith('OTEL_'));
  for (const name of otelVariables) process.env[name] = env[name];
  const logger = createLogger({
    level: loaded.config.log.level,
    // Several lines may come in one piece.
    destination: { write: (text) => void logLines.push(...text.split(/(?<=\n)/)) },
  });
  const gateway = await startGateway(loaded, { logger, clock, timers, ...(workers && { workers }) });
  const { publicUrl, adminUrl } = gateway;
  const connections = new Agent({ keepAlive: true });
  const document = await send(publicUrl, { method: 'GET', path: '/openapi.json' });
  const checker = checkerOf(document.text);
  const [token = ''] = (env['ADMIN_TOKEN'] ?? '').split(',').map((pair) => pair.slice(pair.indexOf('=') + 1));

  /** One request to the public listener. The path goes out exactly as it is given. */
  const get = async (path: string, ask: Ask = {}): Promise<Reply> => {
    const { key, method = 'GET', headers = {}, agent = connections, isUndocumented = false } = ask;
    const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const reply = await send(publicUrl, { method, path, headers: { ...authorization, ...headers }, agent });
    const isExempt = typeof isUndocumented === 'boolean' ? isUndocumented : isUndocumented(reply);
    if (!isExempt) checker.check({ ...reply, method, path, body: reply.text });
    return reply;
  };

  /** One request to the admin listener with these headers and this body, and no others. */
  const adminRaw = (method: string, path: string, { headers, body }: AdminRequest = {}): Promise<Reply> =>
    send(adminUrl, { method, path, headers, body });

  /** One request to the admin listener; a body goes out as JSON, and the first of ADMIN_TOKEN with it. */
  const admin = (
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply> =>
    adminRaw(method, path, {
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(token !== '' && { authorization: `Bearer ${token}` }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });

  /** Issues a key through the admin listener, by default one with every scope in WORKSPACE_A. */
  const issue = async (wanted: KeyRequest = {}): Promise<{ readonly keyId: string; readonly token: string }> => {
    const body = {
      name: 'test',
      workspaceIds: [WORKSPACE_A],
      scopes: ['reports.read', 'calls.read', 'coaching.read'],
      ...wanted,
    };
    const reply = await admin('POST', '/api/keys', body);
    if (reply.status !== 201) throw new Error(`no key was issued: ${reply.text}`);
    const issued = issuedSchema.parse(reply.json);
    return { keyId: issued.key.keyId, token: issued.token };
  };

  return {
    store,
    clock,
    logLines: logLines as readonly string[],
    publicUrl,
    adminUrl,
    get,
    admin,
    adminRaw,
    issue,
    /** The token of an issued key. */
    issueKey: async (wanted: KeyRequest = {}): Promise<string> => (await issue(wanted)).token,
    /** Sends bytes to the public listener that no HTTP client would send; returns what comes until the connection ends. */
    raw: (bytes: string | Buffer): Promise<RawReply> => sendRaw(publicUrl, bytes),
    /** The same to the admin listener. */
    adminBytes: (bytes: string | Buffer): Promise<RawReply> => sendRaw(adminUrl, bytes),
    /** Reads the configuration again, with these variables over those of the start. Returns what needs a restart. */
    reload: (changed: Readonly<Record<string, string>>): readonly string[] =>
      gateway.reload(loadConfig({ env: { ...env, ...changed } })),
    close: async (): Promise<void> => {
      await gateway.stop(0);
      connections.destroy();
      // So that the next gateway of the file is traced only if it says so.
      for (const name of otelVariables) delete process.env[name];
      folder.close();
      if (shared === undefined) await store.close();
    },
  };
}

/** The host without the brackets of IPv6, as sockets take it. */
function addressOf(url: string): { readonly hostname: string; readonly port: string } {
  const { hostname, port } = new URL(url);
  return { hostname: hostname.replace(/^\[(.*)\]$/, '$1'), port };
}

interface Outgoing {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Buffer | undefined;
  readonly agent?: Agent | false | undefined;
}

export function send(baseUrl: string, { method, path, headers = {}, body, agent }: Outgoing): Promise<Reply> {
  const { hostname, port } = addressOf(baseUrl);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, method, path, headers, agent: agent ?? false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const text = decode(bytes, response.headers['content-encoding']).toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text, json: jsonOf(text) });
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
  const { hostname, port } = addressOf(baseUrl);
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
