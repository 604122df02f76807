/** Reads the body of a store's answer: decoded, and bounded in bytes while it streams in. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { Reservation } from './answer-memory.ts';
import { garbled, malformed } from './store-error.ts';

/** By how much a coded body may exceed what it holds: headers, incompressible parts, and what is inside the decoder. */
const MAX_CODING_OVERHEAD_BYTES = 512 * 1024;
/** The body of an error is read for its code alone, and is not worth the rest of the deadline. */
const MAX_ERROR_BODY_BYTES = 8 * 1024;
const ERROR_BODY_TIMEOUT_MS = 1000;

interface BodyLimit {
  /** The record's name in messages. */
  readonly title: string;
  readonly maxBytes: number;
  /** Null for a body that is too short to be counted. */
  readonly reservation: Reservation | null;
}

/**
 * The decoded body. Its cap is on the decoded bytes: a gzip bomb is given up when its output passes the cap. Any failure
 * destroys the stream and its connection. It is left in the socket until there is room for it.
 */
export async function readBody(stream: Readable, headers: IncomingHttpHeaders, limit: BodyLimit): Promise<Buffer> {
  const { title, maxBytes, reservation } = limit;
  const chunks: Buffer[] = [];
  let bytes = 0;
  const collect = async (decoded: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of decoded) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw malformed(`the store's ${title} is larger than ${maxBytes} bytes`);
      if (reservation?.covers(bytes) === false) await reservation.cover(bytes, maxBytes);
      chunks.push(chunk);
    }
  };
  /** A coded body of nothing could go on for ever. */
  async function* bounded(coded: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let codedBytes = 0;
    for await (const chunk of coded) {
      codedBytes += chunk.length;
      if (codedBytes > bytes + MAX_CODING_OVERHEAD_BYTES)
        throw garbled('the body has far more bytes than what it holds');
      yield chunk;
    }
  }
  const coding = headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (coding === '' || coding === 'identity') {
    const declaredBytes = Math.min(Number(headers['content-length'] ?? 0), maxBytes);
    if (reservation?.covers(declaredBytes) === false) await reservation.cover(declaredBytes, declaredBytes);
    await collect(stream);
  } else if (coding === 'gzip' || coding === 'x-gzip') await pipeline(stream, bounded, createGunzip(), collect);
  else {
    stream.destroy();
    throw garbled('the body has a content coding that was not asked for');
  }
  reservation?.settle(bytes);
  return Buffer.concat(chunks, bytes);
}

/** The status says that the call failed, whatever becomes of the body: one that cannot be read is taken as empty. */
export async function readErrorBody(stream: Readable, headers: IncomingHttpHeaders): Promise<Buffer> {
  const timer = setTimeout(() => stream.destroy(), ERROR_BODY_TIMEOUT_MS);
  try {
    return await readBody(stream, headers, { title: 'error', maxBytes: MAX_ERROR_BODY_BYTES, reservation: null });
  } catch {
    return Buffer.alloc(0);
  } finally {
    clearTimeout(timer);
  }
}
