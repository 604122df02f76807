/**
 * Reads on their way to the process that follows their keys, and the form in which they travel: seven bytes each. Times
 * travel as ages, so that the clocks of two machines needn't agree.
 */
import { CACHE_CLASSES, type CacheClass } from '../ttl-policy.ts';

export interface KeyRead {
  readonly class: CacheClass;
  /** `hash32` of the key. */
  readonly keyHash: number;
  /** Unix milliseconds. */
  readonly atMs: number;
}

/** A read's class, the hash of its key, and its time. */
type ReadParts = readonly [cacheClass: CacheClass, keyHash: number, atMs: number];

const VERSION = 1;
const HEADER_BYTES = 1;
const READ_BYTES = 7;
const OLDEST_MS = 0xffff;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/**
 * Reads that wait to be sent, as numbers side by side: as objects they would live just long enough to be copied by every
 * collection of the young generation.
 */
export class ReadBuffer {
  readonly #classes: Uint8Array;
  readonly #keyHashes: Uint32Array;
  readonly #timesMs: Float64Array;
  #size = 0;

  constructor(capacity: number) {
    this.#classes = new Uint8Array(capacity);
    this.#keyHashes = new Uint32Array(capacity);
    this.#timesMs = new Float64Array(capacity);
  }

  get size(): number {
    return this.#size;
  }

  get isFull(): boolean {
    return this.#size === this.#classes.length;
  }

  /** As `KeyRead`. What is added to a full one is lost. */
  add(cacheClass: CacheClass, keyHash: number, atMs: number): void {
    if (this.isFull) return;
    this.#classes[this.#size] = CACHE_CLASSES.indexOf(cacheClass);
    this.#keyHashes[this.#size] = keyHash;
    this.#timesMs[this.#size] = atMs;
    this.#size += 1;
  }

  /** Hands out all of them, in the order in which they came; none is left. */
  drain(visit: (...read: ReadParts) => void): void {
    const size = this.#size;
    this.#size = 0;
    for (let index = 0; index < size; index += 1) {
      const cacheClass = CACHE_CLASSES[this.#classes[index] ?? -1];
      if (cacheClass !== undefined) visit(cacheClass, this.#keyHashes[index] ?? 0, this.#timesMs[index] ?? 0);
    }
  }
}

/** `sentAtMs` is when it is sent; a read that is more than a minute old is sent as one that is a minute old. */
export function encodeReads(reads: readonly KeyRead[], sentAtMs: number): string {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + reads.length * READ_BYTES);
  let at = bytes.writeUInt8(VERSION);
  for (const read of reads) {
    at = bytes.writeUInt8(CACHE_CLASSES.indexOf(read.class), at);
    at = bytes.writeUInt32LE(read.keyHash, at);
    at = bytes.writeUInt16LE(Math.min(OLDEST_MS, Math.max(0, sentAtMs - read.atMs)), at);
  }
  return bytes.toString('base64');
}

/** Null for what is not of this form. */
export function decodeReads(text: string, receivedAtMs: number): readonly KeyRead[] | null {
  const bytes = BASE64.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0);
  if (bytes[0] !== VERSION || (bytes.length - HEADER_BYTES) % READ_BYTES !== 0) return null;
  const reads: KeyRead[] = [];
  for (let at = HEADER_BYTES; at < bytes.length; at += READ_BYTES) {
    const cacheClass = CACHE_CLASSES[bytes.readUInt8(at)];
    if (cacheClass === undefined) return null;
    const atMs = receivedAtMs - bytes.readUInt16LE(at + 5);
    reads.push({ class: cacheClass, keyHash: bytes.readUInt32LE(at + 1), atMs });
  }
  return reads;
}
