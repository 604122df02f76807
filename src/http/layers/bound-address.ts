/** Refuses addresses that are longer than any that can be meant, before their query is taken apart. */
import { Problem } from '../problem.ts';
import { notFound } from '../read.ts';
import { type Context, routeOf } from '../state.ts';

/** Path and query, in bytes as they were sent. */
const MAX_ADDRESS_BYTES = 8192;
const TOO_LONG = `The address is longer than ${MAX_ADDRESS_BYTES} bytes.`;

const V1_WITH_400: ReadonlySet<string> = new Set(['listReports', 'getWorkspaceKey']);

/** v1's single reads have no 400 (S1), and nothing of theirs has such an address: 404 there. */
export function boundAddress(ctx: Context): void {
  // Node gives each byte of a request target as one character.
  if ((ctx.req.url?.length ?? 0) <= MAX_ADDRESS_BYTES) return;
  const { surface, name } = routeOf(ctx);
  throw surface === 'v1' && !V1_WITH_400.has(name) ? notFound(ctx) : new Problem(400, TOO_LONG);
}
