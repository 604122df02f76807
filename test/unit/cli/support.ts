import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listenOnLoopback, type RunningServer } from '../../support/loopback.ts';

export { evalgate, type Outcome } from '../../support/cli.ts';

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
