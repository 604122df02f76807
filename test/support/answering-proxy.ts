/** A proxy in front of a gateway that answers some requests by itself, as ingresses do. */
import { createServer, get } from 'node:http';
import { listenOnLoopback } from './loopback.ts';

interface OwnAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

interface AnsweringProxy {
  readonly url: string;
  /** The next requests for that path and query get its own answer. */
  readonly answerAt: (address: string, onAnswer?: () => void, times?: number) => void;
  readonly close: () => Promise<void>;
}

export async function startProxy(
  gatewayUrl: string,
  { status, headers = {}, body }: OwnAnswer,
): Promise<AnsweringProxy> {
  let own = { address: '', left: 0, onAnswer: (): void => {} };
  const server = createServer((request, response) => {
    if (request.url === own.address && own.left > 0) {
      own.onAnswer();
      own.left -= 1;
      response.writeHead(status, headers).end(body);
      return;
    }
    get(new URL(request.url ?? '', gatewayUrl), { headers: request.headers }, (found) => {
      response.writeHead(found.statusCode ?? 500, found.headers);
      found.pipe(response);
    });
  });
  const running = await listenOnLoopback(server);
  return {
    url: running.url,
    answerAt: (address, onAnswer = () => {}, times = 1) => {
      own = { address, left: times, onAnswer };
    },
    close: () => running.close(),
  };
}
