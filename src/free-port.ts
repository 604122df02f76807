/** A port that nobody listens on. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/** One that was free just now; 0 where the host is none of this machine, which whoever listens there will find out. */
export async function freePort(host: string): Promise<number> {
  const server = createServer();
  try {
    server.listen(0, host);
    await once(server, 'listening');
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  } catch {
    return 0;
  } finally {
    server.close();
  }
}
