import { execFile } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { listenOnLoopback, type RunningServer } from '../../support/loopback.ts';

export const LAUNCHER = fileURLToPath(new URL('../../../src/cli/evalgate.js', import.meta.url));

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** All that the command finds in its environment, besides the PATH. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Flags of Node.js itself. */
  readonly nodeFlags?: readonly string[];
  readonly node?: string;
}

/** Runs `evalgate` as a process of its own, to its end. */
export function evalgate(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const { env = {}, input = '', nodeFlags = [], node = process.execPath } = options;
  return new Promise((resolve) => {
    const child = execFile(
      node,
      [...nodeFlags, LAUNCHER, ...args],
      { env: { PATH: process.env['PATH'], ...env }, timeout: 15_000 },
      (_, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    );
    child.stdin?.end(input);
  });
}

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: unknown;
}

export type Reply = readonly [status: number, body: unknown, headers?: Readonly<Record<string, string>>];

export interface FakeServer extends RunningServer {
  readonly received: Received[];
}

/** A server that answers each request as it is told, and keeps what it was sent. */
export async function serve(reply: (request: Received, message: IncomingMessage) => Reply): Promise<FakeServer> {
  const received: Received[] = [];
  const answer = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    const sent = await text(message);
    const body: unknown = sent === '' ? undefined : JSON.parse(sent);
    const { method = '', url: path = '', headers } = message;
    const request = { method, path, authorization: headers.authorization, body };
    received.push(request);
    const [status, content, more] = reply(request, message);
    response.writeHead(status, { 'content-type': 'application/json', ...more });
    response.end(typeof content === 'string' ? content : JSON.stringify(content));
  };
  const server = createServer((message, response) => {
    answer(message, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  });
  return { ...(await listenOnLoopback(server)), received };
}
