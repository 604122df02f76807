/** A record as bytes: JSON, compressed where that pays. */
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress, zstdDecompressSync } from 'node:zlib';

/** How the bytes are written. */
export const BODY_CODINGS = ['identity', 'zstd'] as const;
export type BodyCoding = (typeof BODY_CODINGS)[number];

export interface EncodedBody {
  readonly coding: BodyCoding;
  /** Of the JSON before it was compressed. */
  readonly decodedBytes: number;
  readonly bytes: Buffer;
}

/**
 * A list of ten records is 6 kB, and a third of that compressed. But with a decompression each, lists read from Redis
 * as fast as it goes made two full collections a second, and almost none without: presumably what Node makes for one is held
 * until after the young collection. So only what is larger is compressed. Zstandard at its default level: as small as gzip for a page of records at a
 * quarter of its time, a third of its size and a sixth of its time for a transcript of 2 MB.
 */
const COMPRESS_FROM_BYTES = 16 * 1024;
/**
 * Up to here it is done on the spot, in less time than parsing what comes out takes: the hop to the thread pool and back
 * costs more than the work. Beyond, other requests would notice.
 */
const DECOMPRESS_AT_ONCE_BYTES = 256 * 1024;

const compress = promisify(zstdCompress);
const decompress: (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer> = promisify(zstdDecompress);

export async function encodeBody(record: unknown): Promise<EncodedBody> {
  const plain = Buffer.from(JSON.stringify(record));
  const decodedBytes = plain.length;
  if (decodedBytes < COMPRESS_FROM_BYTES) return { coding: 'identity', decodedBytes, bytes: plain };
  return { coding: 'zstd', decodedBytes, bytes: await compress(plain) };
}

/** Rejects where the bytes are not what was encoded. Never yields more than they are said to hold. */
export async function decodeBody({ coding, decodedBytes, bytes }: EncodedBody): Promise<unknown> {
  const plain = coding === 'identity' ? bytes : await decompressed(bytes, decodedBytes);
  if (plain.length !== decodedBytes) throw new RangeError(`${plain.length} bytes instead of ${decodedBytes}`);
  const value: unknown = JSON.parse(plain.toString());
  return value;
}

async function decompressed(bytes: Buffer, maxOutputLength: number): Promise<Buffer> {
  if (maxOutputLength <= DECOMPRESS_AT_ONCE_BYTES) return zstdDecompressSync(bytes, { maxOutputLength });
  return await decompress(bytes, { maxOutputLength });
}
