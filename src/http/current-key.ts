/** `GET /v1/key` and `GET /v2/key`: what a key may do and what is left of its quota (K8a: shown to its holder at no cost). */
import { z } from 'zod';
import { publicId, timestampSchema, toTimestamp } from '../domain/evaluation.ts';
import { SCOPES } from '../domain/vocabulary.ts';
import type { ApiKey } from '../keys/key.ts';
import { resetSeconds } from '../quota/headers.ts';
import type { QuotaUsage, WindowState } from '../quota/limiter.ts';
import { apiKeyOf, type Context, type Route } from './state.ts';

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
    id: publicId.meta({ description: 'Names the key to people and in logs. It is no secret.' }),
    name: z.string().meta({ description: 'What the key was called when it was issued.' }),
    status: z.literal('active').meta({ description: 'A key with any other status is answered with 403.' }),
    scopes: z.array(z.enum(SCOPES)).meta({ description: 'What the key may read.' }),
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

const currentKeyBodySchema = z.strictObject({ key: currentKeySchema }).meta({ id: 'KeyBody' });

/** Declared by both surfaces. Any active key may ask, whatever its scopes: this is how to find them out. */
export const currentKeyRoute = {
  path: '/key',
  scope: null,
  quota: 'none',
  forbidden: 'This API key may not be used: it is deprecated, revoked, expired, or bound to other addresses.',
  notFound: 'There is no such key.',
  parseRequest: null,
  answer: showCurrentKey,
  summary: 'Get the key in use',
  description:
    'The API key that the request is made with: its scopes, workspaces and expiry, and both windows of its quota. It costs nothing: the request counts in neither window, and is answered even if the quota is used up; it has a limit of its own, 60 a minute.',
  parameters: [],
  failures: [400, 401, 403, 429, 500],
  response: currentKeyBodySchema,
  success: 'The key, and how its quota stands.',
} satisfies Partial<Route>;

export function showCurrentKey(ctx: Context): void {
  const { usage } = ctx.state;
  if (usage === null) throw new Error('A route shows the usage of a quota that nobody looked up.');
  const body = Buffer.from(JSON.stringify(toCurrentKeyBody(apiKeyOf(ctx), usage)));
  ctx.state.answer = { status: 200, body, headers: [{ 'Cache-Control': 'no-store' }], cache: null };
}

/** An active key as its holder sees it. Holds nothing of the key but what stands here: neither its token nor its hash. */
export function toCurrentKeyBody(
  key: Pick<ApiKey, 'keyId' | 'name' | 'scopes' | 'workspaceIds' | 'expiresAtMs'>,
  { minute, hour }: Pick<QuotaUsage, 'minute' | 'hour'>,
): z.output<typeof currentKeyBodySchema> {
  return {
    key: {
      id: key.keyId,
      name: key.name,
      status: 'active',
      scopes: [...key.scopes],
      workspace_ids: [...key.workspaceIds],
      expires_at: key.expiresAtMs === null ? null : toTimestamp(key.expiresAtMs),
      rate_limit: { minute: windowOf(minute), hour: windowOf(hour) },
    },
  };
}

function windowOf(state: WindowState): z.output<typeof windowSchema> {
  return { limit: state.limit, remaining: state.remaining, reset: resetSeconds(state) };
}
