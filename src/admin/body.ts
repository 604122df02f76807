/** Reading a request's JSON body: never more of it than is allowed. */
import type { AdminContext } from './context.ts';
import { AdminError } from './errors.ts';

/** Largest body of most requests, and of an import of keys, in bytes. */
export const BODY_LIMIT_BYTES = 64 * 1024;
export const IMPORT_LIMIT_BYTES = 1024 * 1024;

/**
 * The parsed body. Throws AdminError 413 where it has more than `limitBytes` bytes, 400 where it is cut off, empty, not
 * UTF-8 or not JSON. What is parsed is still of unknown shape.
 */
export async function readJson(ctx: AdminContext, limitBytes: number): Promise<unknown> {
  // A declared length over the limit is refused before a byte is read.
  if (Number(ctx.get('Content-Length')) > limitBytes) throw tooLarge(limitBytes);
  const bytes = await readBytes(ctx, limitBytes);
  if (bytes.length === 0) throw badBody('The body is empty. Send a JSON object.');
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw badBody('The body is not valid UTF-8. Send JSON in UTF-8.');
  }
  try {
    const parsed: unknown = JSON.parse(text);
    return parsed;
  } catch {
    // The parser's own message quotes the body, which may hold what should stay private.
    throw badBody(`The body of ${bytes.length} bytes is not valid JSON. Send one JSON object.`);
  }
}

async function readBytes(ctx: AdminContext, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    // Leaving the loop early must not destroy the stream: its socket still has to carry the refusal.
    const stream: AsyncIterable<unknown> = ctx.req.iterator({ destroyOnReturn: false });
    for await (const chunk of stream) {
      if (!Buffer.isBuffer(chunk)) throw new TypeError('A request without an encoding is read as bytes');
      length += chunk.length;
      if (length > limitBytes) break;
      chunks.push(chunk);
    }
  } catch {
    throw badBody('The body ended before all of it had arrived. Send the request again.');
  }
  if (length > limitBytes) {
    // The rest is thrown away as it comes, for as long as the server's request timeout lets it.
    ctx.req.resume();
    throw tooLarge(limitBytes);
  }
  return Buffer.concat(chunks, length);
}

function badBody(publicMessage: string): AdminError {
  return new AdminError(400, publicMessage, { privateMessage: 'unreadable body' });
}

function tooLarge(limitBytes: number): AdminError {
  return new AdminError(
    413,
    `The body is larger than ${limitBytes} bytes, the most this endpoint takes. Send less at once.`,
    {
      privateMessage: 'body too large',
    },
  );
}
