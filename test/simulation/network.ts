/**
 * The network between simulated processes and their Redis: streams of bytes that arrive after a while, in order, and the faults
 * that are between. A Redis can be out of reach for one process alone, and be late for all.
 */
import { Duplex } from 'node:stream';
import type { SeededRandom } from '../support/random.ts';
import type { ClientConnection, RedisModel } from './redis/server.ts';
import type { Schedule, SimulatedProcess } from './schedule.ts';

/** A Redis that processes connect to. */
export interface RedisHost {
  readonly model: RedisModel;
  isUp: boolean;
  /** How long its answers take beyond the network. */
  lateMs: number;
}

export interface NetworkOptions {
  readonly schedule: Schedule;
  readonly random: SeededRandom;
  readonly hosts: ReadonlyMap<string, RedisHost>;
  /** How often a published message arrives, and how late. */
  readonly fateOfMessage: () => { readonly copies: number; readonly lateMs: number };
}

const MIN_LATENCY_MS = 0.1;
const USUAL_LATENCY_MS = 0.5;

export class Network {
  readonly #options: NetworkOptions;
  readonly #sockets = new Set<SimulatedSocket>();
  /** Processes that cannot reach a Redis, by the name of its host. */
  readonly #cut = new Map<string, Set<SimulatedProcess>>();

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  connect(process: SimulatedProcess, name: string): Duplex {
    const host = this.#options.hosts.get(name);
    if (host === undefined) throw new Error(`no host is called ${name}`);
    const { schedule, fateOfMessage } = this.#options;
    const socket = new SimulatedSocket({
      schedule,
      process,
      host,
      hostName: name,
      latencyMs: () => this.#latencyMs(),
      isCut: () => this.isCut(name, process),
      fateOfMessage,
      onEnd: (ended) => this.#sockets.delete(ended),
    });
    this.#sockets.add(socket);
    return socket;
  }

  isCut(name: string, process: SimulatedProcess): boolean {
    return this.#cut.get(name)?.has(process) ?? false;
  }

  /** From now on nothing passes between them, until `heal`; what is under way then waits. */
  cut(name: string, process: SimulatedProcess): void {
    this.#cut.set(name, (this.#cut.get(name) ?? new Set()).add(process));
  }

  heal(name: string, process: SimulatedProcess): void {
    this.#cut.get(name)?.delete(process);
    for (const socket of this.#sockets) if (socket.isOf(name, process)) socket.goOn();
  }

  /** Resets all connections to that host. */
  reset(name: string): void {
    for (const socket of this.#sockets) if (socket.isOf(name)) socket.reset();
  }

  /** The process has ended: its connections close. */
  closeOf(process: SimulatedProcess): void {
    for (const socket of this.#sockets) if (socket.isOf(null, process)) socket.abandon();
  }

  #latencyMs(): number {
    const { random } = this.#options;
    return MIN_LATENCY_MS - USUAL_LATENCY_MS * Math.log(1 - random.next());
  }
}

interface SocketOptions {
  readonly schedule: Schedule;
  readonly process: SimulatedProcess;
  readonly host: RedisHost;
  readonly hostName: string;
  readonly latencyMs: () => number;
  readonly isCut: () => boolean;
  readonly fateOfMessage: NetworkOptions['fateOfMessage'];
  readonly onEnd: (socket: SimulatedSocket) => void;
}

/** Bytes of one turn, in one direction. */
interface Segment {
  bytes: string;
  readonly sentAtMs: number;
}

/** One direction of a connection: what is sent arrives in order. */
class Lane {
  readonly #schedule: Schedule;
  readonly #process: SimulatedProcess | null;
  readonly #isCut: () => boolean;
  readonly #deliver: (bytes: string) => void;
  readonly #stuck: (() => void)[] = [];
  #lastAtMs = 0;
  #open: Segment | null = null;

  constructor(
    schedule: Schedule,
    process: SimulatedProcess | null,
    isCut: () => boolean,
    deliver: (bytes: string) => void,
  ) {
    this.#schedule = schedule;
    this.#process = process;
    this.#isCut = isCut;
    this.#deliver = deliver;
  }

  send(bytes: string, delayMs: number): void {
    const { nowMs } = this.#schedule;
    if (this.#open?.sentAtMs === nowMs) {
      this.#open.bytes += bytes;
      return;
    }
    const segment: Segment = { bytes, sentAtMs: nowMs };
    this.#open = segment;
    this.#lastAtMs = Math.max(this.#lastAtMs, nowMs + delayMs);
    this.#schedule.at(this.#lastAtMs, this.#process, () => this.#arrive(segment));
  }

  goOn(): void {
    for (const arrive of this.#stuck.splice(0)) this.#schedule.after(0, this.#process, arrive);
  }

  #arrive(segment: Segment): void {
    if (this.#open === segment) this.#open = null;
    if (this.#isCut()) this.#stuck.push(() => this.#deliver(segment.bytes));
    else this.#deliver(segment.bytes);
  }
}

/** A connection as ioredis uses it: in the place of a socket. */
class SimulatedSocket extends Duplex {
  connecting = true;
  readonly #options: SocketOptions;
  readonly #toServer: Lane;
  readonly #toClient: Lane;
  #client: ClientConnection | null = null;
  #idle: () => void = () => undefined;

  constructor(options: SocketOptions) {
    super({ autoDestroy: true, allowHalfOpen: false });
    this.#options = options;
    const { schedule, process, isCut, latencyMs } = options;
    this.#toServer = new Lane(schedule, null, isCut, (bytes) => this.#client?.receive(bytes));
    this.#toClient = new Lane(schedule, process, isCut, (bytes) => {
      if (!this.destroyed) this.push(Buffer.from(bytes, 'latin1'));
    });
    schedule.after(2 * latencyMs(), process, () => this.#connect());
  }

  isOf(name: string | null, process?: SimulatedProcess): boolean {
    const { hostName } = this.#options;
    return (name === null || name === hostName) && (process === undefined || process === this.#options.process);
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  setTimeout(delayMs: number, onIdle: () => void = () => undefined): this {
    const { schedule, process } = this.#options;
    this.#idle();
    if (delayMs > 0) this.#idle = schedule.after(delayMs, process, onIdle);
    return this;
  }

  goOn(): void {
    this.#toServer.goOn();
    this.#toClient.goOn();
  }

  reset(): void {
    const { schedule, process } = this.#options;
    this.#leave();
    schedule.after(0, process, () => this.destroy(networkError('read', 'ECONNRESET')));
  }

  /** Its process is gone, and sees no more of it. */
  abandon(): void {
    this.#leave();
  }

  override _read(): void {
    // All that arrives is pushed.
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const { host, latencyMs } = this.#options;
    this.#toServer.send(chunk.toString('latin1'), latencyMs() + host.lateMs);
    done();
  }

  override _final(done: () => void): void {
    this.#leave();
    this.push(null);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#idle();
    this.#leave();
    done(error);
  }

  #connect(): void {
    const { host, isCut, latencyMs, fateOfMessage, schedule } = this.#options;
    // A connection attempt into nothing has no answer until it times out.
    if (this.destroyed || isCut()) return;
    this.connecting = false;
    if (!host.isUp) {
      this.destroy(networkError('connect', 'ECONNREFUSED'));
      return;
    }
    this.#client = host.model.connect((bytes) => {
      const fate = bytes.startsWith('>3\r\n$7\r\nmessage') ? fateOfMessage() : null;
      if (fate === null) this.#toClient.send(bytes, latencyMs());
      else if (fate.lateMs === 0 && fate.copies === 1) this.#toClient.send(bytes, latencyMs());
      else {
        for (let copy = 0; copy < fate.copies; copy += 1) {
          schedule.after(fate.lateMs, null, () => this.#toClient.send(bytes, latencyMs()));
        }
      }
    });
    this.emit('connect');
  }

  #leave(): void {
    this.#client?.close();
    this.#client = null;
    this.#options.onEnd(this);
  }
}

function networkError(syscall: string, code: string): Error {
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall });
}
