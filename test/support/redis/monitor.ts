/** Every command that a Redis is sent, by MONITOR over a plain socket: ioredis fails if a command follows at once. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

export interface RedisMonitor {
  /**
   * The commands so far at all servers, in order, each as its words. Words with control characters are escaped as Redis
   * writes them.
   */
  readonly commands: readonly (readonly string[])[];
  close(): void;
}

interface Command {
  /** By the clock of the machine, which all servers share. */
  readonly atSeconds: number;
  readonly words: readonly string[];
}

/** Resolves once all servers have begun to report. */
export async function monitorRedis(...servers: readonly string[]): Promise<RedisMonitor> {
  const commands: Command[] = [];
  const ends = await Promise.all(servers.map((url) => monitorServer(url, commands)));
  return {
    get commands() {
      return commands.toSorted((a, b) => a.atSeconds - b.atSeconds).map(({ words }) => words);
    },
    close: () => {
      for (const end of ends) end();
    },
  };
}

/** Resolves with what ends it. */
async function monitorServer(url: string, commands: Command[]): Promise<() => void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const lines = createInterface({ input: socket });
  lines.on('line', (line) => {
    const [, seconds, text] = /^\+(\d+\.\d+) \[[^\]]*\] (.*)$/.exec(line) ?? [];
    if (text === undefined) return;
    const words = [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = '']) =>
      word.replaceAll(/\\(["\\])/g, '$1'),
    );
    commands.push({ atSeconds: Number(seconds), words });
  });
  socket.write('MONITOR\r\n');
  await once(lines, 'line');
  return () => void socket.destroy();
}
