/** Binding a server to an address. */
import type { Server } from 'node:http';

/** Resolves with where the server listens; rejects where it can't, because the port is taken for instance. */
export async function listenOn(
  server: Server,
  port: number,
  host: string,
): Promise<{ readonly url: string; readonly port: number }> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address();
  const bound = address === null || typeof address === 'string' ? port : address.port;
  return { url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`, port: bound };
}
