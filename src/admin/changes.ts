/** /api/changes: the store announces changes, and operators see those that were announced or found. */
import { ANNOUNCEMENT_LIMIT_BYTES, announcementBody, MAX_CHANGES } from '../changes/announcement.ts';
import type { RecentEvent } from '../changes/recent.ts';
import { type SignatureHeaders, signatureFault, WEBHOOK_ID } from '../changes/signature.ts';
import { addressKey } from '../keys/client-address.ts';
import type { Position } from '../journal/journal.ts';
import { type AnswerOf, iso, ROUTES } from '../operations/api.ts';
import { AdminError, notAnnounced } from '../operations/errors.ts';
import { mustBe, quoted } from '../operations/input.ts';
import { z } from 'zod';
import {
  type AdminContext,
  type AdminAccess,
  type AdminMiddleware,
  type AdminOptions,
  endpoint,
  type Endpoint,
} from './endpoint.ts';
import { bodyBytes, readBody, readQuery } from './input.ts';

/** By whom a signed call is made. */
const SIGNER = { who: 'webhook', role: 'changes' } as const;
const ID_HEADER = 'webhook-id';

export function changesEndpoints({ changes }: AdminOptions): readonly Endpoint[] {
  const { announcements, recentChanges } = changes;
  const bodySchema = announcementBody();
  return [
    endpoint(ROUTES.announceChanges, async (ctx) => {
      const id = webhookId(ctx);
      const body = await readBody(ctx, z.unknown(), ANNOUNCEMENT_LIMIT_BYTES);
      refuseTooMany(body);
      const announcement = mustBe(bodySchema, body);
      try {
        const { isRepeated, reached, of } = await announcements.announce(announcement, id);
        return { changes: announcement.changes.length, repeated: isRepeated, reached, processes: of };
      } catch (error) {
        throw notAnnounced(error);
      }
    }),
    endpoint(ROUTES.listChanges, (ctx) => {
      const { after, limit } = readQuery(ctx, ROUTES.listChanges.query);
      const { events, end, isMissing } = recentChanges.after(after ?? null);
      return { ...page(events, end, limit), missing: isMissing };
    }),
  ];
}

/**
 * Lets a call pass without a token if it announces changes and one of the secrets has signed it. Wrong signatures count as wrong
 * tokens do, per address. Without secrets, signatures are nothing.
 */
export function acceptSigned({ changesSecrets, wrongTokens, addressOf }: AdminAccess): AdminMiddleware {
  const { method, path } = ROUTES.announceChanges;
  return async (ctx, next) => {
    const secrets = changesSecrets();
    const isSigned = ctx.get('webhook-signature') !== '';
    if (!isSigned || secrets.length === 0 || ctx.method !== method || ctx.path !== path) {
      await next();
      return;
    }
    const headers: SignatureHeaders = {
      'webhook-id': ctx.get(ID_HEADER),
      'webhook-timestamp': ctx.get('webhook-timestamp'),
      'webhook-signature': ctx.get('webhook-signature'),
    };
    const fault = signatureFault(secrets, headers, await bodyBytes(ctx, ANNOUNCEMENT_LIMIT_BYTES));
    if (fault !== null) throw wrongSignature(fault, await wrongTokens.consume(addressKey(addressOf(ctx))));
    Object.assign(ctx.state, SIGNER);
    await next();
  };
}

function wrongSignature(fault: string, waitSeconds: number | null): AdminError {
  return new AdminError(
    401,
    `The signature is none of CHANGES_SECRET: ${fault}. Sign as Standard Webhooks has it (v1): HMAC-SHA256 of "id.timestamp.body", with the body exactly as it is sent and a timestamp of the last five minutes.`,
    {
      privateMessage: `wrong signature: ${fault}`,
      headers: {
        'WWW-Authenticate': 'Bearer realm="evalgate admin"',
        ...(waitSeconds === null ? {} : { 'Retry-After': String(waitSeconds) }),
      },
    },
  );
}

/** Null if the caller has not named its announcement. Throws AdminError 400. */
function webhookId(ctx: AdminContext): string | null {
  const id = ctx.get(ID_HEADER);
  if (id === '') return null;
  if (WEBHOOK_ID.test(id)) return id;
  throw new AdminError(400, `The header webhook-id is ${quoted(id)}; allowed: 1 to 256 visible ASCII characters.`, {
    privateMessage: 'faulty webhook-id',
  });
}

const listSchema = z.object({ changes: z.array(z.unknown()) });

function refuseTooMany(body: unknown): void {
  const length = listSchema.safeParse(body).data?.changes.length ?? 0;
  if (length <= MAX_CHANGES) return;
  throw new AdminError(
    413,
    `The body has ${length} changes, and may have ${MAX_CHANGES}; nothing was changed. Send several announcements.`,
    { privateMessage: 'too many changes' },
  );
}

/** Whole announcements, until they have as many changes as are wanted. */
function page(
  events: readonly RecentEvent[],
  end: Position,
  limit: number,
): Omit<AnswerOf<typeof ROUTES.listChanges>, 'missing'> {
  const changes: AnswerOf<typeof ROUTES.listChanges>['changes'][number][] = [];
  let last = end;
  let taken = 0;
  for (const { event, position } of events) {
    if (changes.length >= limit) break;
    const about = { at: iso(event.atMs), announced: event.isAnnounced, mode: event.mode };
    changes.push(
      ...event.changes.map(({ tag, workspace, kinds, isCreated, isDeleted, previousWorkspace }) => ({
        ...about,
        record: tag,
        workspace,
        kinds,
        created: isCreated,
        deleted: isDeleted,
        previousWorkspace,
      })),
    );
    last = position;
    taken += 1;
  }
  const isMore = taken < events.length;
  const { history, sequence } = isMore ? last : end;
  return { changes, cursor: `${history}.${sequence}`, hasMore: isMore };
}
