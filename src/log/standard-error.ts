/**
 * Lines on standard error, which must not decide over the service. It can be a file on a full disk, a pipe whose reader
 * has left or reads no more, or a terminal that is gone or stopped. Then lines are dropped and counted, and the rest of
 * the process goes on:
 *
 * - a write that fails drops the lines of its batch; the next batch is tried all the same
 * - while a write is not taken, at most `MAX_WAITING_BYTES` wait behind it; further lines are dropped
 * - nothing waits for a write but `flush`, and that for `MAX_FLUSH_MS` at most
 *
 * A batch is written after 100 ms, or when it is full.
 */
import { constants, openSync, write, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const STDERR = 2;
const FLUSH_EVERY_MS = 100;
const MAX_BATCH_BYTES = 65_536;
const MAX_WAITING_BYTES = 1_000_000;
const MAX_FLUSH_MS = 1000;
const LINE_END = Buffer.from('\n');

/** One way to write, which never blocks the event loop. */
interface Output {
  /** Resolves with how many bytes were taken; never, if nobody takes them. */
  readonly write: (bytes: Buffer) => Promise<number>;
  /** For the moment of the exit: writes as much as is taken at once. May throw. */
  readonly writeNow: (bytes: Buffer) => void;
}

interface Batch {
  /** Whole lines. */
  text: string;
  bytes: number;
}

export class StandardError {
  readonly #output = openOutput();
  readonly #timer = setInterval(() => void this.#writeAll(), FLUSH_EVERY_MS).unref();
  /** Lines are added to it until it is full, or due: a write costs much more than a line. */
  #batch: Batch = { text: '', bytes: 0 };
  /** Those to be written, oldest first. */
  readonly #waiting: Batch[] = [];
  /** In all batches. */
  #waitingBytes = 0;
  #writing: Promise<void> | null = null;
  /** Whether the last line that was written lacks its end. */
  #isCut = false;
  #droppedLines = 0;
  #unreported = 0;
  #onTaken: (dropped: number) => void = () => undefined;

  constructor() {
    process.once('exit', () => this.#writeLast());
  }

  /** How many lines were ever dropped. */
  get droppedLines(): number {
    return this.#droppedLines;
  }

  /** Calls back when lines are taken again, with how many were dropped since the last time. */
  onTaken(listener: (dropped: number) => void): void {
    this.#onTaken = listener;
  }

  /** Takes whole lines. Never throws, never waits. */
  write(lines: string): void {
    const bytes = Buffer.byteLength(lines);
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) return this.#drop(lines.split('\n').length - 1);
    this.#waitingBytes += bytes;
    if (this.#batch.bytes + bytes > MAX_BATCH_BYTES) void this.#writeAll();
    this.#batch.text += lines;
    this.#batch.bytes += bytes;
  }

  /** Resolves when all lines are written or dropped, or nobody has taken them for a second. */
  async flush(): Promise<void> {
    const done = new AbortController();
    const late = sleep(MAX_FLUSH_MS, undefined, { signal: done.signal }).catch(() => undefined);
    await Promise.race([this.#writeAll(), late]);
    done.abort();
  }

  /** Resolves when the lines of now are written or dropped. Never rejects. */
  #writeAll(): Promise<void> {
    if (this.#batch.bytes > 0) this.#waiting.push(this.#batch);
    this.#batch = { text: '', bytes: 0 };
    this.#writing ??= this.#writeBatches().finally(() => {
      this.#writing = null;
    });
    return this.#writing;
  }

  async #writeBatches(): Promise<void> {
    for (let batch = this.#waiting.shift(); batch !== undefined; batch = this.#waiting.shift()) {
      this.#waitingBytes -= batch.bytes;
      const isWritten = await this.#writeBatch(Buffer.from(batch.text));
      // Reported once there is room for the line that says so.
      if (!isWritten || this.#unreported === 0 || this.#waitingBytes > MAX_WAITING_BYTES - MAX_BATCH_BYTES) continue;
      const dropped = this.#unreported;
      this.#unreported = 0;
      this.#onTaken(dropped);
    }
  }

  async #writeBatch(lines: Buffer): Promise<boolean> {
    let left = lines;
    try {
      if (this.#isCut) await this.#output.write(LINE_END);
      this.#isCut = false;
      while (left.length > 0) left = left.subarray(await this.#output.write(left));
      return true;
    } catch {
      // The rest of a disk takes a part of a batch.
      const isBegun = left.length < lines.length;
      this.#isCut ||= isBegun && lines.at(-left.length - 1) !== LINE_END[0];
      this.#drop(left.filter((byte) => byte === LINE_END[0]).length);
      return false;
    }
  }

  #drop(lines: number): void {
    this.#droppedLines += lines;
    this.#unreported += lines;
  }

  #writeLast(): void {
    clearInterval(this.#timer);
    try {
      for (const { text } of [...this.#waiting, this.#batch]) this.#output.writeNow(Buffer.from(text));
    } catch {
      // The output takes no lines.
    }
  }
}

/**
 * Node writes to pipes and sockets without blocking, to files and terminals it does not (its "note on process I/O"). Those
 * are written to by `fs.write`, in a thread. A thread that a stopped terminal holds up would keep the process from
 * exiting, so a terminal is opened once more, not to block.
 */
function openOutput(): Output {
  const { stderr } = process;
  if (stderr.isTTY) return fileOutput(openTerminal());
  return stderr instanceof Socket ? streamOutput(stderr) : fileOutput(STDERR);
}

function streamOutput(stream: Socket): Output {
  // The callback of a write has its error.
  stream.on('error', () => undefined);
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        stream.write(bytes, (error) => (error ? reject(error) : resolve(bytes.length)));
      }),
    writeNow: (bytes) => void stream.write(bytes),
  };
}

function fileOutput(fd: number): Output {
  const writeTo = promisify(write);
  return {
    write: async (bytes) => {
      for (;;) {
        try {
          return (await writeTo(fd, bytes)).bytesWritten;
        } catch (error) {
          // A stopped terminal.
          if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
          await sleep(FLUSH_EVERY_MS, undefined, { ref: false });
        }
      }
    },
    writeNow: (bytes) => void writeSync(fd, bytes),
  };
}

function openTerminal(): number {
  try {
    return openSync(`/dev/fd/${STDERR}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    // It belongs to another user.
    return STDERR;
  }
}
