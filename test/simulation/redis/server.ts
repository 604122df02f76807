/**
 * A Redis in the process: its commands over a keyspace, scripts in real Lua, messages, blocked reads and a clock that is handed
 * in. It speaks Redis's protocol on streams of bytes, so whatever speaks to Redis can speak to it.
 */
import { createHash } from 'node:crypto';
import type { Timers } from '../../../src/time/timers.ts';
import { entriesAfter, runCommand } from './commands.ts';
import { type Backup, Keyspace } from './keyspace.ts';
import { LuaScripts } from './lua.ts';
import { encode, encodePush, Failure, OK, parseCommands, type Reply, Status } from './reply.ts';

/** Compiled scripts are the same for all servers. */
let scripts: LuaScripts | undefined;

export interface ServerOptions {
  /** Unix microseconds. */
  readonly nowMicros: () => number;
  readonly timers: Timers;
  /** Called with each command but those that concern a connection. */
  readonly onCommand?: ((words: readonly string[]) => void) | undefined;
}

/** Where the bytes to a client go. */
export type Send = (bytes: string) => void;

interface Blocked {
  readonly stream: string;
  readonly tryAgain: () => boolean;
}

export class RedisModel {
  readonly keyspace: Keyspace;
  readonly #timers: Timers;
  readonly #onCommand: ServerOptions['onCommand'];
  /** Texts of scripts by their digest. */
  readonly #known = new Map<string, string>();
  readonly #connections = new Set<ClientConnection>();
  readonly #blocked = new Set<Blocked>();

  constructor({ nowMicros, timers, onCommand }: ServerOptions) {
    this.keyspace = new Keyspace(nowMicros);
    this.#timers = timers;
    this.#onCommand = onCommand;
  }

  /** A client has connected; `send` gets what is sent to it. */
  connect(send: Send): ClientConnection {
    const connection = new ClientConnection(this, send, (closed) => this.#connections.delete(closed));
    this.#connections.add(connection);
    return connection;
  }

  backup(): Backup {
    return this.keyspace.backup();
  }

  /** Goes on with what was there at that time. Connections stand. */
  restore(backup: Backup): void {
    this.keyspace.restore(backup);
  }

  /** Runs a command that concerns no connection. Never throws. */
  run(words: readonly string[]): Reply {
    this.#onCommand?.(words);
    try {
      return this.#dispatch(words);
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    } finally {
      this.#wakeBlocked();
    }
  }

  /**
   * Reads what follows in a stream, waiting for it up to `blockMs`; null for a read that does not wait. `done` is called once,
   * at once or later. Returns a function that ends the wait.
   */
  read(from: StreamRead, done: (reply: Reply) => void): () => void {
    const { stream, after, count, blockMs } = from;
    const tryAgain = (): boolean => {
      const entries = entriesAfter(this.keyspace, stream, after, count);
      if (entries === null) return false;
      end();
      done(new Map([[stream, entries]]));
      return true;
    };
    const blocked = { stream, tryAgain };
    let cancel: (() => void) | null = null;
    const end = (): void => {
      cancel?.();
      this.#blocked.delete(blocked);
    };
    if (tryAgain()) return () => undefined;
    if (blockMs === null) {
      done(null);
      return () => undefined;
    }
    this.#blocked.add(blocked);
    cancel = this.#timers.after(blockMs, () => {
      end();
      done(null);
    });
    return end;
  }

  publish(channel: string, message: string): number {
    const listening = [...this.#connections].filter((connection) => connection.channels.has(channel));
    for (const connection of listening) connection.push(['message', channel, message]);
    return listening.length;
  }

  #dispatch(words: readonly string[]): Reply {
    const [name = '', ...args] = words;
    switch (name.toUpperCase()) {
      case 'EVAL':
        return this.#eval(this.#remember(args[0] ?? ''), args.slice(1));
      case 'EVALSHA': {
        const script = this.#known.get(args[0] ?? '');
        if (script === undefined) throw new Failure('NOSCRIPT No matching script. Please use EVAL.');
        return this.#eval(script, args.slice(1));
      }
      case 'PUBLISH':
        return this.publish(args[0] ?? '', args[1] ?? '');
      case 'PING':
        return new Status('PONG');
      case 'INFO':
        return '# Replication\r\nrole:master\r\nconnected_slaves:0\r\n# Memory\r\nused_memory:1000000\r\nmaxmemory:0\r\n';
      case 'WAIT':
        return 0;
      case 'CONFIG':
        return new Map();
      case 'FLUSHALL':
        this.keyspace.clear();
        return OK;
      default:
        return runCommand(this.keyspace, words);
    }
  }

  #remember(script: string): string {
    this.#known.set(createHash('sha1').update(script, 'latin1').digest('hex'), script);
    return script;
  }

  #eval(script: string, [count = '0', ...words]: readonly string[]): Reply {
    const keys = words.slice(0, Number(count));
    scripts ??= new LuaScripts();
    const reply = scripts.run(script, keys, words.slice(keys.length), (command) => this.#dispatch(command));
    if (reply instanceof Failure) throw reply;
    return reply;
  }

  /** After a command that may have appended. */
  #wakeBlocked(): void {
    for (const blocked of this.#blocked) blocked.tryAgain();
  }
}

interface StreamRead {
  readonly stream: string;
  readonly after: string;
  readonly count: number;
  readonly blockMs: number | null;
}

/** One client: its commands, one after the other, and the channels that it listens to. */
export class ClientConnection {
  readonly channels = new Set<string>();
  readonly #server: RedisModel;
  readonly #send: Send;
  readonly #onClose: (connection: ClientConnection) => void;
  #received = '';
  /** Commands that wait behind a blocked one. */
  readonly #waiting: (readonly string[])[] = [];
  #endRead: (() => void) | null = null;

  constructor(server: RedisModel, send: Send, onClose: (connection: ClientConnection) => void) {
    this.#server = server;
    this.#send = send;
    this.#onClose = onClose;
  }

  /** The client has sent these bytes. */
  receive(bytes: string): void {
    const { commands, rest } = parseCommands(this.#received + bytes);
    this.#received = rest;
    this.#waiting.push(...commands);
    this.#goOn();
  }

  push(items: readonly Reply[]): void {
    this.#send(encodePush(items));
  }

  close(): void {
    this.#endRead?.();
    this.#waiting.length = 0;
    this.#onClose(this);
  }

  #goOn(): void {
    while (this.#endRead === null) {
      const words = this.#waiting.shift();
      if (words === undefined) return;
      this.#run(words);
    }
  }

  #run(words: readonly string[]): void {
    const [name = '', ...args] = words;
    switch (name.toUpperCase()) {
      case 'HELLO':
        return this.#send(encode(new Map<string, Reply>([['proto', 3]])));
      case 'AUTH':
      case 'SELECT':
      case 'CLIENT':
        return this.#send(encode(OK));
      case 'QUIT':
        return this.#send(encode(OK));
      case 'SUBSCRIBE':
        return this.#listen('subscribe', args, (channel) => this.channels.add(channel));
      case 'UNSUBSCRIBE':
        return this.#listen('unsubscribe', args, (channel) => this.channels.delete(channel));
      case 'XREAD':
        return this.#read(args);
      default:
        return this.#send(encode(this.#server.run(words)));
    }
  }

  #listen(kind: string, channels: readonly string[], change: (channel: string) => unknown): void {
    for (const channel of channels) {
      change(channel);
      this.push([kind, channel, this.channels.size]);
    }
  }

  #read(args: readonly string[]): void {
    const option = (name: string): string | undefined => {
      const place = args.findIndex((word) => word.toUpperCase() === name);
      return place < 0 ? undefined : args[place + 1];
    };
    const place = args.findIndex((word) => word.toUpperCase() === 'STREAMS');
    const block = option('BLOCK');
    let isDone = false;
    const end = this.#server.read(
      {
        stream: args[place + 1] ?? '',
        after: args[place + 2] ?? '',
        count: Number(option('COUNT') ?? Infinity),
        blockMs: block === undefined ? null : Number(block),
      },
      (reply) => {
        isDone = true;
        const isLate = this.#endRead !== null;
        this.#endRead = null;
        this.#send(encode(reply));
        if (isLate) this.#goOn();
      },
    );
    if (!isDone) this.#endRead = end;
  }
}
