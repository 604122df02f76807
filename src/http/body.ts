/** The bytes of an answer, in the form that costs least to send. */

/**
 * As they are, or as text with one character for each byte (latin1). Node sends text together with the head in one piece
 * that it needs no memory for, where both fit into 16 kB, and that saves a request from memory a twentieth of its time.
 */
export type Body = Buffer | string;

/** What both may have, with room for the head. */
const MOST_TEXT_BYTES = 15_000;

/**
 * To be kept for long: it has memory of its own. A slice of Node's pool, or of a compressor's buffer, would keep the whole
 * of it, many times as much.
 */
export function toBody(bytes: Buffer): Body {
  if (bytes.length <= MOST_TEXT_BYTES) return bytes.toString('latin1');
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

/** The bytes again, for as long as a piece of work with them takes. */
export function bytesOf(body: Body): Buffer {
  return typeof body === 'string' ? Buffer.from(body, 'latin1') : body;
}
