/** Starting and stopping a server on a free port, of loopback unless another is wanted, with every connection it ever had. */
import type { Server, Socket } from 'node:net';

export interface RunningServer {
  /** `http://<host>:<port>`, without a trailing slash. */
  readonly url: string;
  readonly port: number;
  /** Destroys all connections and frees the port. */
  close(): Promise<void>;
}

export async function listenOnLoopback(server: Server, host = '127.0.0.1'): Promise<RunningServer> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    // A client that goes away is nothing to a test server.
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
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
