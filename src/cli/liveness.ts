/**
 * Whether the gateway with this configuration is live. A health check asks every few seconds beside a gateway, so this loads
 * no more than it needs; and it fails for nothing but the gateway: a file of the configuration that somebody has broken since
 * the start, or a secret that cannot be read, leaves a gateway live.
 */
import { readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { Agent, get } from './node-http.ts';
import { configFileOf, type PlainAdmin, readPlainAdmin } from '../config/plain-file.ts';

/** Longer than a gateway may be busy. The callers of the check give it as long. */
const TIMEOUT_MS = 10_000;
const PORT = /^[1-9]\d{0,4}$/;
const DEFAULT_HOST = '127.0.0.1';
const DEFAULT_PORT = 8081;
const ALIVE = '{"status":"alive"}';
/** Where a listener on all addresses is found. The second is for machines whose IPv6 has no loopback address. */
const NEARBY: Readonly<Record<string, readonly string[]>> = { '::': ['::1', '127.0.0.1'], '0.0.0.0': ['127.0.0.1'] };

export interface Liveness {
  readonly isLive: boolean;
  /** The address that answered; null if none did. */
  readonly url: string | null;
  /** One sentence. */
  readonly text: string;
}

/**
 * Asks `/livez` of the admin listener, as the environment and its file have its address. Never rejects for a gateway that is
 * not there.
 */
export async function findLiveness(env: NodeJS.ProcessEnv): Promise<Liveness> {
  const { host, port } = await addressOf(env);
  if (port === 0) return dead('The admin port is 0, which takes any free port: set one that can be checked.');
  const failures: string[] = [];
  for (const address of NEARBY[host] ?? [host]) {
    const url = `http://${isIPv6(address) ? `[${address}]` : address}:${port}`;
    const failure = await failureAt(address, port);
    if (failure === null) return { isLive: true, url, text: `The gateway at ${url} is live.` };
    failures.push(`${url} (${failure})`);
  }
  return dead(`No live gateway answers at ${failures.join(' or ')}.`);
}

function dead(text: string): Liveness {
  return { isLive: false, url: null, text };
}

/** By the variables and, if they are not enough, the file. Only a file of an unusual form takes the parser and all settings. */
async function addressOf(env: NodeJS.ProcessEnv): Promise<{ readonly host: string; readonly port: number }> {
  const { ADMIN_HOST = '', ADMIN_PORT = '' } = env;
  if (ADMIN_HOST !== '' && PORT.test(ADMIN_PORT)) return { host: ADMIN_HOST, port: Number(ADMIN_PORT) };
  const inFile = readPlainFile(configFileOf(env));
  // A variable that is given and is no port is for the whole configuration to judge.
  if (inFile === null || (ADMIN_PORT !== '' && !PORT.test(ADMIN_PORT))) {
    const { loadAdminAddress } = await import('../config/load.ts');
    return loadAdminAddress(env);
  }
  return {
    host: ADMIN_HOST || (inFile.host ?? DEFAULT_HOST),
    port: Number(ADMIN_PORT || (inFile.port ?? DEFAULT_PORT)),
  };
}

function readPlainFile(path: string): PlainAdmin | null {
  try {
    return readPlainAdmin(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}

/** Null if a gateway answers there. */
function failureAt(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const fail = (error: NodeJS.ErrnoException): void => {
      resolve(error.name === 'AbortError' ? 'no answer in time' : (error.code ?? 'the connection broke'));
    };
    // An agent of its own never goes through a proxy, whatever HTTP_PROXY says.
    const request = get({ host, port, path: '/livez', agent: new Agent(), signal: AbortSignal.timeout(TIMEOUT_MS) });
    request.on('error', fail);
    request.on('response', (response) => {
      let body = '';
      response.on('error', fail);
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.on('end', () => {
        const isAlive = response.statusCode === 200 && body === ALIVE;
        resolve(isAlive ? null : `status ${response.statusCode ?? 'none'}, not the answer of an admin listener`);
      });
    });
  });
}
