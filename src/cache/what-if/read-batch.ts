/**
 * Reads on their way to the process that follows their keys, and the form in which they travel: seven bytes each. Times
 * travel as ages, so that the clocks of two machines needn't agree.
 */
import { CACHE_CLASSES, type CacheClass } from '../times.ts';

export interface KeyRead {
  readonly class: CacheClass;
  /** `hash32` of the key. */
  readonly keyHash: number;
  /** Unix milliseconds. */
  readonly atMs: number;
}

const VERSION = 1;
const HEADER_BYTES = 1;
const READ_BYTES = 7;
const OLDEST_MS = 0xffff;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

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
