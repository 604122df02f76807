/**
 * Reading a body without ever holding more than was allowed. The cap is on the decoded bytes: a gzip bomb is given up
 * when its output passes the cap, at the cost of one decoding buffer, and the connection that carries it is destroyed.
 * Bytes as they are sent are bounded by what they hold: no coding makes a body much larger, and one of nothing can go on
 * for ever.
 */
import { pipeline, type Readable, Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';

/** The only coding that is asked for; any other would have been sent unasked. */
export const ACCEPTED_CODING = 'gzip';
const GUNZIP_CHUNK_BYTES = 64 * 1024;
/** By how much: headers, what can't be compressed, and above all what is on its way through the decoder. */
const CODING_COSTS_BYTES = 512 * 1024;

export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError';
}

export class UnknownCodingError extends Error {
  override readonly name = 'UnknownCodingError';
}

export interface BodyRules {
  /** The response's Content-Encoding, as it was sent. */
  readonly contentEncoding: string | undefined;
  /** Most bytes after decoding. */
  readonly maxBytes: number;
}

/**
 * The decoded body. Destroys the source on any failure. Rejects with BodyTooLargeError, UnknownCodingError, zlib's
 * error (code `Z_...`) or the source's own.
 */
export async function readBody(source: Readable, { contentEncoding, maxBytes }: BodyRules): Promise<Buffer> {
  const coding = codingOf(contentEncoding);
  if (coding === 'identity') return await new Collector(source, { source, maxBytes }).body;
  if (coding === 'unknown') {
    source.destroy();
    throw new UnknownCodingError('the body has a content coding that was not asked for');
  }
  const gunzip = createGunzip({ chunkSize: GUNZIP_CHUNK_BYTES });
  const collector = new Collector(gunzip, { source, maxBytes });
  const inBounds = bounded(() => collector.bytes);
  // Whatever fails, the decoder ends with it, and so does the collector.
  pipeline(source, inBounds, gunzip, () => {});
  return await collector.body;
}

interface Collecting {
  /** What is to be destroyed where the body is given up: where it comes from in the end. */
  readonly source: Readable;
  readonly maxBytes: number;
}

/** By its events: most bodies come in one or two pieces, for which an iteration or a pipeline costs more than they do. */
class Collector {
  readonly body: Promise<Buffer>;
  bytes = 0;
  readonly #chunks: Buffer[] = [];

  constructor(decoded: Readable, { source, maxBytes }: Collecting) {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    this.body = promise;
    const fail = (error: Error): void => {
      reject(error);
      decoded.destroy();
      source.destroy();
    };
    decoded.on('data', (chunk: Buffer) => {
      this.bytes += chunk.length;
      if (this.bytes <= maxBytes) this.#chunks.push(chunk);
      else fail(new BodyTooLargeError(`the body is larger than ${maxBytes} bytes`));
    });
    let hasEnded = false;
    decoded.once('end', () => {
      hasEnded = true;
      resolve(Buffer.concat(this.#chunks, this.bytes));
    });
    decoded.once('error', fail);
    const onClose = (): void => {
      if (!hasEnded) fail(decoded.errored ?? new Error('the body was cut off'));
    };
    // Of a stream that has failed already there is nothing more to hear.
    if (decoded.destroyed) onClose();
    else decoded.once('close', onClose);
  }
}

/** Passes coded bytes on, as long as there are hardly more of them than of those that came of them. */
function bounded(decodedBytes: () => number): Transform {
  let bytes = 0;
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      bytes += chunk.length;
      if (bytes <= decodedBytes() + CODING_COSTS_BYTES) done(null, chunk);
      else done(new BodyTooLargeError('the body has far more bytes than what it holds'));
    },
  });
}

/** RFC 9110 section 8.4.1: names are case-insensitive, `x-gzip` is `gzip`. */
function codingOf(contentEncoding: string | undefined): 'identity' | 'gzip' | 'unknown' {
  switch (contentEncoding?.trim().toLowerCase() ?? '') {
    case '':
    case 'identity':
      return 'identity';
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    default:
      return 'unknown';
  }
}
