/** Every command that a Redis is sent, by MONITOR over a plain socket: a client library expects replies in its own order. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

export interface RedisMonitor {
  /** The commands so far, each as its words. Words with control characters are escaped as Redis writes them. */
  readonly commands: readonly (readonly string[])[];
  close(): void;
}

/** Resolves once Redis has begun to report. */
export async function monitorRedis(url: string): Promise<RedisMonitor> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const commands: (readonly string[])[] = [];
  const lines = createInterface({ input: socket });
  lines.on('line', (line) => {
    const [, words] = /^\+\d+\.\d+ \[[^\]]*\] (.*)$/.exec(line) ?? [];
    if (words === undefined) return;
    commands.push(
      [...words.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = '']) => word.replaceAll(/\\(["\\])/g, '$1')),
    );
  });
  socket.write('MONITOR\r\n');
  await once(lines, 'line');
  return { commands, close: () => socket.destroy() };
}
