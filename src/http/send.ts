/** A read as a 200 or a 304, with everything that a cache on the way or at the consumer needs to know (C5). */
import { cacheHeaders } from '../cache/headers.ts';
import type { CacheRead } from '../cache/reader.ts';
import { type MaybePromise, whenThere } from '../maybe-promise.ts';
import { type Answer, JSON_TYPE } from './answer.ts';
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
  const validators = `ETag: ${etag}\r\nAge: ${age}\r\nCache-Control: ${cacheControl}\r\nCache-Status: ${cacheStatus}\r\n`;
  const ifNoneMatch = headers['if-none-match'];
  if (ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag)) {
    return { status: 304, fields: validators, body: null };
  }
  const fields = coding === null ? validators + JSON_TYPE : `${validators}Content-Encoding: ${coding}\r\n${JSON_TYPE}`;
  return whenThere(representation.body(coding), (body) => ({ status: 200, fields, body }));
}
