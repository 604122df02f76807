/** A single read of either surface: one record, one public form, kept with the entry. */
import { Derivation } from '../cache/entry.ts';
import type { CacheRead, ReadContext } from '../cache/reader.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { type Asks, type SingleAsked, asker } from './asked.ts';
import type { Answer } from './answer.ts';
import { whileThere } from './gone.ts';
import { readContextOf, visibleRecord } from './read.ts';
import { Representation } from './representation.ts';
import { answerRead } from './send.ts';
import type { Context } from './state.ts';

export interface SingleRead<T> {
  readonly asks: Asks<SingleAsked>;
  readonly read: (id: string, context: ReadContext) => MaybePromise<CacheRead<T>>;
  /** Whether this caller may see the record: decided on each request, cached or not. */
  readonly isVisible: (record: T, workspaceIds: readonly string[]) => boolean;
  /** The public form, as an object to be rendered as JSON. */
  readonly toPublic: (record: T) => object;
}

/** A record of another workspace than those that the caller asks for is none (K5, K6). */
export function isOneOf(record: { readonly workspaceId: string }, workspaceIds: readonly string[]): boolean {
  return workspaceIds.includes(record.workspaceId);
}

export function createSingleRead<T>(options: SingleRead<T>): (ctx: Context) => MaybePromise<Answer> {
  const forms = new Derivation<Representation>((form) => form.weightBytes);
  const asked = asker(options.asks);
  return (ctx) => {
    const { id, workspaceIds } = asked(ctx);
    const context = readContextOf(ctx, workspaceIds ?? undefined);
    return whileThere(ctx, options.read(id, context), (read) => {
      const record = visibleRecord(ctx, read.entry, (candidate) => options.isVisible(candidate, context.workspaceIds));
      const render = (): Representation => new Representation(options.toPublic(record));
      return answerRead(ctx, read, forms.of(read.entry, render));
    });
  };
}
