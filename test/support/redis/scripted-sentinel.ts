/**
 * A Sentinel that says what a test tells it to: which primary it names, when it answers, and that another one has taken over.
 * It speaks as much of Redis's protocol as clients ask of a Sentinel.
 */
import { createServer, type Socket } from 'node:net';
import { listenOnLoopback, type RunningServer } from '../loopback.ts';

const SWITCH = '+switch-master';

export class ScriptedSentinel {
  readonly #running: RunningServer;
  readonly #subscribers: Set<Socket>;
  readonly #waiting: (() => void)[];
  readonly #state: { primary: URL; isHolding: boolean };

  private constructor(running: RunningServer, parts: Parts) {
    this.#running = running;
    this.#subscribers = parts.subscribers;
    this.#waiting = parts.waiting;
    this.#state = parts.state;
  }

  /** `primary`: the address of a Redis. */
  static async start(primary: string): Promise<ScriptedSentinel> {
    const parts: Parts = {
      subscribers: new Set(),
      waiting: [],
      state: { primary: new URL(primary), isHolding: false },
    };
    const server = createServer((socket) => accept(socket, parts));
    return new ScriptedSentinel(await listenOnLoopback(server), parts);
  }

  get url(): string {
    return `redis+sentinel://127.0.0.1:${this.#running.port}/main`;
  }

  /** Who is asked for the primary gets no answer, until `release`. */
  hold(): void {
    this.#state.isHolding = true;
  }

  /** How many wait for an answer. */
  get waiting(): number {
    return this.#waiting.length;
  }

  get listening(): number {
    return this.#subscribers.size;
  }

  release(): void {
    this.#state.isHolding = false;
    for (const reply of this.#waiting.splice(0)) reply();
  }

  announce(): void {
    const { hostname, port } = this.#state.primary;
    const message = `main 127.0.0.1 1 ${hostname} ${port}`;
    for (const socket of this.#subscribers) socket.write(array(['message', SWITCH, message]));
  }

  close(): Promise<void> {
    return this.#running.close();
  }
}

interface Parts {
  readonly subscribers: Set<Socket>;
  readonly waiting: (() => void)[];
  readonly state: { primary: URL; isHolding: boolean };
}

function array(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
}

function accept(socket: Socket, parts: Parts): void {
  let pending = '';
  socket.on('error', () => undefined).on('close', () => parts.subscribers.delete(socket));
  socket.on('data', (chunk: Buffer) => {
    pending += chunk.toString('latin1');
    for (;;) {
      const command = commandIn(pending);
      if (command === null) return;
      pending = pending.slice(command.length);
      answer(socket, command.words, parts);
    }
  });
}

/** The first whole command, and how long it is; null if it is not there yet. */
function commandIn(text: string): { readonly words: readonly string[]; readonly length: number } | null {
  const count = /^\*(\d+)\r\n/.exec(text);
  if (count === null) return null;
  let length = count[0].length;
  const words: string[] = [];
  for (let word = 0; word < Number(count[1]); word += 1) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(length));
    if (size === null) return null;
    const from = length + size[0].length;
    length = from + Number(size[1]) + 2;
    if (text.length < length) return null;
    words.push(text.slice(from, length - 2));
  }
  return { words, length };
}

function answer(socket: Socket, [name = '', ...words]: readonly string[], parts: Parts): void {
  switch (name.toUpperCase()) {
    case 'SENTINEL': {
      const { primary } = parts.state;
      const reply = (): void => {
        if (socket.writable) socket.write(array([primary.hostname, primary.port]));
      };
      if (parts.state.isHolding) parts.waiting.push(reply);
      else reply();
      return;
    }
    case 'SUBSCRIBE':
      parts.subscribers.add(socket);
      for (const channel of words) socket.write(`*3\r\n$9\r\nsubscribe\r\n$${channel.length}\r\n${channel}\r\n:1\r\n`);
      return;
    case 'PING':
      socket.write(parts.subscribers.has(socket) ? array(['pong', '']) : '+PONG\r\n');
      return;
    case 'HELLO':
      socket.write("-ERR unknown command 'HELLO'\r\n");
      return;
    default:
      socket.write('+OK\r\n');
  }
}
