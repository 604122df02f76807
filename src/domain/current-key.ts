/** An API key as its holder sees it: the same on both surfaces. */
import { z } from 'zod';
import { timestampSchema, toTimestamp } from './evaluation.ts';

const windowSchema = z
  .strictObject({
    limit: z.int().min(1).meta({ description: 'Requests that the window may hold.' }),
    remaining: z.int().min(0).meta({ description: 'Requests left in it now.' }),
    reset: z.int().min(0).meta({
      description: 'Unix time in seconds, rounded up, at which the window is empty again if no more requests come.',
    }),
  })
  .meta({ id: 'KeyWindow' });

const currentKeySchema = z
  .strictObject({
    id: z.string().meta({ description: 'Names the key to people and in logs. It is no secret.' }),
    name: z.string().meta({ description: 'What the key was called when it was issued.' }),
    status: z.literal('active').meta({ description: 'A key with any other status is answered with 403.' }),
    scopes: z.array(z.enum(['reports.read', 'calls.read', 'coaching.read'])).meta({
      description: 'What the key may read.',
    }),
    workspace_ids: z.array(z.string().meta({ format: 'uuid' })).meta({
      description: 'The workspaces that the key may see, in lower case.',
    }),
    expires_at: timestampSchema.nullable().meta({
      description: 'From then on the key is answered with 403; null where it does not expire.',
    }),
    rate_limit: z
      .strictObject({ minute: windowSchema, hour: windowSchema })
      .meta({ id: 'KeyRateLimit', description: 'Both windows of the quota that the key draws on.' }),
  })
  .meta({ id: 'Key', description: 'The API key that the request was made with.' });

/** The body of `GET /v1/key` and `GET /v2/key`. */
export const currentKeyBodySchema = z.strictObject({ key: currentKeySchema }).meta({ id: 'KeyBody' });

export type CurrentKeyBody = z.output<typeof currentKeyBodySchema>;
type CurrentKey = CurrentKeyBody['key'];

/** An active key, as the registry knows it. */
export interface HeldKey {
  readonly keyId: string;
  readonly name: string;
  readonly scopes: readonly CurrentKey['scopes'][number][];
  readonly workspaceIds: readonly string[];
  readonly expiresAtMs: number | null;
}

/** How its quota stands; `reset` is in Unix seconds. */
export interface HeldQuota {
  readonly minute: Readonly<CurrentKey['rate_limit']['minute']>;
  readonly hour: Readonly<CurrentKey['rate_limit']['hour']>;
}

/** Holds nothing of the key but what stands here: neither its token nor its hash. */
export function toCurrentKeyBody(key: HeldKey, { minute, hour }: HeldQuota): CurrentKeyBody {
  return {
    key: {
      id: key.keyId,
      name: key.name,
      status: 'active',
      scopes: [...key.scopes],
      workspace_ids: [...key.workspaceIds],
      expires_at: key.expiresAtMs === null ? null : toTimestamp(key.expiresAtMs),
      rate_limit: { minute: { ...minute }, hour: { ...hour } },
    },
  };
}
