/**
 * Reading a body without ever holding more than was allowed. The cap is on the decoded bytes: a gzip bomb is given up
 * when its output passes the cap, at the cost of one decoding buffer, and the connection that carries it is destroyed.
 * Bytes as they are sent are bounded by what they hold: no coding makes a body much larger, and one of nothing can go on
 * for ever.
 */
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
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
export async function readBody(source: Readable, rules: BodyRules): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const collect = async (decoded: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of decoded) {
      bytes += chunk.length;
      // Leaving the loop makes the pipeline destroy what still flows.
      if (bytes > rules.maxBytes) return;
      chunks.push(chunk);
    }
  };
  try {
    await drain(source, rules, { collect, collectedBytes: () => bytes });
  } catch (error) {
    // What the pipeline reports after it was left early is only that it was.
    if (bytes <= rules.maxBytes) throw error;
  }
  if (bytes > rules.maxBytes) throw new BodyTooLargeError(`the body is larger than ${rules.maxBytes} bytes`);
  return Buffer.concat(chunks, bytes);
}

interface Collector {
  readonly collect: (decoded: AsyncIterable<Buffer>) => Promise<void>;
  readonly collectedBytes: () => number;
}

async function drain(source: Readable, rules: BodyRules, { collect, collectedBytes }: Collector): Promise<void> {
  switch (codingOf(rules.contentEncoding)) {
    case 'identity':
      await pipeline(source, collect);
      return;
    case 'gzip':
      await pipeline(source, bounded(collectedBytes), createGunzip({ chunkSize: GUNZIP_CHUNK_BYTES }), collect);
      return;
    case 'unknown':
      source.destroy();
      throw new UnknownCodingError('the body has a content coding that was not asked for');
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
