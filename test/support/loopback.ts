/** Starting and stopping a server on a free port, of loopback unless another is wanted, with every connection it ever had. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';

export interface RunningServer {
  /** `http://<host>:<port>`, without a trailing slash. */
  readonly url: string;
  readonly port: number;
  /** Destroys all connections and frees the port. */
  close(): Promise<void>;
}

/** Below the ports that the system gives to outgoing connections, and to servers that take any. */
const FIRST_PORT = 12_000;
export const LAST_PORT = 32_000;

/** A port, at most `last`, that nobody is given by the system: it stays free until it is used, and after that. */
export async function freePort(last = LAST_PORT): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, last);
    if (await isFree(port)) return port;
  }
}

export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return false;
  }
  await once(server.close(), 'close');
  return true;
}

/** `port`: any that the system gives, unless one is given. */
export async function listenOnLoopback(server: Server, host = '127.0.0.1', port = 0): Promise<RunningServer> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    // A client that goes away is nothing to a test server.
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no TCP address.');
  return {
    url: `http://${host}:${address.port}`,
    port: address.port,
    close: async () => {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
