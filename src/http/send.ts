/** A read as a 200 or a 304, with everything that a cache on the way or at the consumer needs to know (C5). */
import { cacheHeaders } from '../cache/headers.ts';
import type { CacheRead } from '../cache/reader.ts';
import { type MaybePromise, whenThere } from '../maybe-promise.ts';
import type { Answer } from './answer.ts';
import { matchesEtag, negotiateCoding } from './conditional.ts';
import { throwIfGone } from './gone.ts';
import type { Representation } from './representation.ts';
import type { Context } from './state.ts';

/** The caller has been authorized for the read's record. */
export function answerRead(
  ctx: Context,
  read: CacheRead<unknown>,
  representation: Representation,
): MaybePromise<Answer> {
  throwIfGone(ctx);
  const { headers } = ctx.req;
  const accepted = headers['accept-encoding'];
  const coding = accepted !== undefined && representation.isCompressible ? negotiateCoding(accepted) : null;
  const etag = representation.etag(coding);
  const { age, cacheControl, cacheStatus } = cacheHeaders(read);
  ctx.state.cache = read.outcome;
  const validators = ['ETag', etag, 'Age', age, 'Cache-Control', cacheControl, 'Cache-Status', cacheStatus];
  const ifNoneMatch = headers['if-none-match'];
  if (ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag)) {
    return { status: 304, fields: validators, body: null };
  }
  if (coding !== null) validators.push('Content-Encoding', coding);
  validators.push('Content-Type', 'application/json; charset=utf-8');
  return whenThere(representation.bytes(coding), (body) => ({ status: 200, fields: validators, body }));
}
