/** What the two surfaces have in common: what an endpoint is, and the order of the steps in front of it. */
import type { MaybePromise } from '../maybe-promise.ts';
import type { Answer } from './answer.ts';
import type { OperationId } from '../domain/operations.ts';
import type { Asks } from './asked.ts';
import { throwIfGone } from './gone.ts';
import { boundAddress } from './layers/bound-address.ts';
import { refused } from './layers/enforce-quota.ts';
import type { Context } from './state.ts';

/** What there is to say of an endpoint without serving it. */
export interface EndpointRoute {
  readonly name: OperationId;
  /** The path behind the surface's prefix, with `:parameters`. */
  readonly path: string;
  readonly forbidden: string;
  readonly notFound: string;
  /** Refuses a key that may not do this at all, before anything of the query is looked at. */
  readonly authorize: (ctx: Context) => void;
  /** The question that is behind a request to it; null where it needs no record. */
  readonly asks: Asks | null;
  /** False where a request to it costs its key nothing; true by default. */
  readonly isCounted?: boolean;
}

export interface Endpoint extends EndpointRoute {
  readonly handle: (ctx: Context) => MaybePromise<Answer>;
}

export interface Steps {
  /** Throws a Problem, or rejects with one, where the request has no active key. */
  readonly requireKey: (ctx: Context) => MaybePromise<void>;
  /** Whether the key's quota has room for it. */
  readonly enforceQuota: (ctx: Context) => MaybePromise<boolean>;
}

/** The way of a request that an endpoint has matched. Rejects with whatever ends it early. */
export async function serveEndpoint(ctx: Context, endpoint: Endpoint, steps: Steps): Promise<Answer> {
  const lookup = steps.requireKey(ctx);
  if (lookup !== undefined) await lookup;
  const isAdmitted = steps.enforceQuota(ctx);
  if (!(isAdmitted instanceof Promise ? await isAdmitted : isAdmitted)) return refused(ctx);
  // What waited for its key or its quota may have been left meanwhile.
  throwIfGone(ctx);
  endpoint.authorize(ctx);
  boundAddress(ctx);
  return endpoint.handle(ctx);
}
