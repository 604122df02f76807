/** A single read of either surface: one record, one public form, kept with the entry. */
import { Derivation } from '../cache/entry.ts';
import type { CacheRead, ReadContext } from '../cache/reader.ts';
import { idParameter, readContextOf, visibleRecord } from './read.ts';
import { Representation } from './representation.ts';
import { sendRead } from './send.ts';
import type { Context } from './state.ts';

export interface SingleRead<T> {
  /** The path parameter that holds the id. */
  readonly parameter: string;
  readonly read: (id: string, context: ReadContext) => Promise<CacheRead<T>>;
  /** The workspaces that are asked for; by default all of the key's. */
  readonly workspaceIds?: (ctx: Context) => readonly string[];
  /** Whether this caller may see the record: decided on each request, cached or not. */
  readonly isVisible: (ctx: Context, record: T) => boolean;
  /** The public form, as an object to be rendered as JSON. */
  readonly toPublic: (record: T) => object;
  /** Refuses a query that can't be meant; by default there is nothing to refuse. */
  readonly checkQuery?: (ctx: Context) => void;
}

export function createSingleRead<T>(options: SingleRead<T>): (ctx: Context) => Promise<void> {
  const forms = new Derivation<Representation>((form) => form.weightBytes);
  return async (ctx) => {
    options.checkQuery?.(ctx);
    const id = idParameter(ctx, options.parameter);
    const read = await options.read(id, readContextOf(ctx, options.workspaceIds?.(ctx)));
    const record = visibleRecord(ctx, read.entry, (candidate) => options.isVisible(ctx, candidate));
    await sendRead(
      ctx,
      read,
      forms.of(read.entry, () => new Representation(options.toPublic(record))),
    );
  };
}
