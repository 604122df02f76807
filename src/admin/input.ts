/** Reads a request's query and JSON body. */
import { z } from 'zod';
import { AdminError } from '../operations/errors.ts';
import { check, memberOf, mustBe, quoted } from '../operations/input.ts';
import type { AdminContext } from './endpoint.ts';

const BODY_LIMIT_BYTES = 64 * 1024;

/**
 * The body as its schema defines it. Throws AdminError 413 if it has more than `limitBytes` bytes, 400 if it is cut off,
 * empty, not UTF-8, not JSON, or not as the schema has it.
 */
export async function readBody<T>(
  ctx: AdminContext,
  schema: z.ZodType<T>,
  limitBytes: number = BODY_LIMIT_BYTES,
): Promise<T> {
  const bytes = await bodyBytes(ctx, limitBytes);
  if (bytes.length === 0) throw unreadable('The body is empty. Send a JSON object.');
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw unreadable('The body is not valid UTF-8. Send JSON in UTF-8.');
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // The parser's own message quotes the body, which may hold what should stay private.
    throw unreadable(`The body of ${bytes.length} bytes is not valid JSON. Send one JSON object.`);
  }
  return mustBe(schema, body);
}

/** The body as it was sent, read once. Throws AdminError 413 if it has more than `limitBytes` bytes, 400 if it is cut off. */
export async function bodyBytes(ctx: AdminContext, limitBytes: number): Promise<Buffer> {
  if (ctx.state.body !== undefined) return ctx.state.body;
  // A declared length over the limit is refused before a byte is read.
  if (Number(ctx.get('Content-Length')) > limitBytes) throw tooLarge(limitBytes);
  ctx.state.body = await readBytes(ctx, limitBytes);
  return ctx.state.body;
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
    throw unreadable('The body ended before all of it had arrived. Send the request again.');
  }
  if (length > limitBytes) {
    // The rest is thrown away as it comes, until the server's request timeout.
    ctx.req.resume();
    throw tooLarge(limitBytes);
  }
  return Buffer.concat(chunks, length);
}

function unreadable(publicMessage: string): AdminError {
  return new AdminError(400, publicMessage, { privateMessage: 'unreadable body' });
}

function tooLarge(limitBytes: number): AdminError {
  const message = `The body is larger than ${limitBytes} bytes, the most this endpoint takes. Send less at once.`;
  return new AdminError(413, message, { privateMessage: 'body too large' });
}

/** The query as its schema defines it. Throws AdminError 400. */
export function readQuery<T>(ctx: AdminContext, schema: z.ZodType<T> & Pick<z.ZodObject, 'shape'>): T {
  const query = new URLSearchParams(`?${ctx.querystring}`);
  const described = z.toJSONSchema(schema, { io: 'input' });
  const given = new Map<string, string | readonly string[]>();
  for (const [name, value] of query) {
    if (!Object.hasOwn(schema.shape, name)) {
      throw badQuery(`Unknown query parameter ${quoted(name)}. Known here: ${Object.keys(schema.shape).join(', ')}.`);
    }
    const isRepeatable = memberOf(described, name)?.type === 'array';
    if (!isRepeatable && given.has(name)) throw badQuery(`The query parameter ${name} may be given only once.`);
    given.set(name, isRepeatable ? query.getAll(name) : value);
  }
  const { faults, value } = check(schema, Object.fromEntries(given));
  if (faults === null) return value;
  throw badQuery(faults.map((fault) => `The query parameter ${fault}.`).join(' '));
}

export function badQuery(message: string): AdminError {
  return new AdminError(400, message, { privateMessage: 'faulty query' });
}
