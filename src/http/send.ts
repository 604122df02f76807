/** Sends a read as a 200 or a 304, with everything that a cache on the way or at the consumer needs to know (C5). */
import { cacheHeaders } from '../cache/headers.ts';
import type { CacheRead } from '../cache/reader.ts';
import { matchesEtag, negotiateCoding } from './conditional.ts';
import type { Representation } from './representation.ts';
import type { Context } from './state.ts';

/** The caller has been authorized for the read's record. */
export async function sendRead(ctx: Context, read: CacheRead<unknown>, representation: Representation): Promise<void> {
  const coding = representation.isCompressible ? negotiateCoding(ctx.get('Accept-Encoding')) : null;
  const etag = representation.etag(coding);
  const { age, cacheControl, cacheStatus } = cacheHeaders(read);
  ctx.state.cache = read.outcome;
  ctx.set('ETag', etag);
  ctx.set('Age', age);
  ctx.set('Cache-Control', cacheControl);
  ctx.set('Cache-Status', cacheStatus);
  if (matchesEtag(ctx.get('If-None-Match'), etag)) {
    ctx.status = 304;
    return;
  }
  const bytes = await representation.bytes(coding);
  if (coding !== null) ctx.set('Content-Encoding', coding);
  ctx.status = 200;
  ctx.type = 'json';
  ctx.body = bytes;
}
