/** The feed of changes on the calls surface: what a consumer has to read again, and what is gone. */
import { z } from 'zod';
import { type FeedPlace, readCursor, writeCursor } from '../changes/cursor.ts';
import { EVENT_CHANGES, EVENT_KINDS } from '../changes/events.ts';
import { type FeedPage, FeedUnavailableError } from '../changes/feed.ts';
import { publicId, timestampSchema, toTimestamp } from '../domain/evaluation.ts';
import { RedisTimeoutError } from '../redis/errors.ts';
import {
  asksForForeign,
  givenCursor,
  strictInteger,
  strictQuery,
  strictUuid,
  WORKSPACE_FORBIDDEN,
} from './parameters.ts';
import { ErrorText, Problem, refuse } from './problem.ts';
import { Representation, respondWith } from './respond.ts';
import { parseQuery, route } from './route.ts';
import { apiKeyOf, type Route } from './state.ts';

const after = givenCursor(
  'after',
  'The `cursor` of the answer before. Without it, the answer holds no changes and the cursor of now, which the changes of the last three seconds follow: a list may be from before them.',
);
const limit = strictInteger('limit', 'How many changes an answer holds at most.', { min: 1, max: 1000, fallback: 100 });
const workspaceId = strictUuid(
  'workspaceId',
  "Only changes in this workspace; without it, in all workspaces of the key. A workspace that is not one of the key's is 403, whatever else is wrong with the query.",
);
const PARAMETERS = [after, limit, workspaceId];

const changeSchema = z
  .strictObject({
    id: publicId.meta({ description: 'The call.' }),
    kind: z.enum(EVENT_KINDS).meta({ description: 'What has changed: the call itself, or one of its parts.' }),
    change: z.enum(EVENT_CHANGES).meta({
      description:
        'A deletion is one event of the call. A call that moves to another workspace is deleted in the one and then created in the other.',
    }),
    at: timestampSchema,
  })
  .meta({ id: 'Change' });

const changesPageSchema = z
  .strictObject({
    changes: z.array(changeSchema).meta({ description: 'Oldest first: in the order in which they became visible.' }),
    cursor: z.string().meta({ description: 'Send it as `after` for what follows. It means nothing else.' }),
    has_more: z.boolean().meta({ description: 'Whether more changes can be read at once.' }),
    unannounced: z.boolean().meta({
      description:
        'True while the store changes records without a word, so that this feed is not all: read all calls now and then.',
    }),
  })
  .meta({ id: 'ChangesPage' });

const CURSOR_INVALID = new Problem(
  'cursor_invalid',
  new ErrorText('The query parameter after must be the cursor of an earlier answer. To begin, leave it out.'),
);
const CURSOR_EXPIRED = new Problem(
  'cursor_expired',
  new ErrorText(
    'The cursor has expired: changes after it are no longer kept, or it is of a key with other workspaces. Take a new cursor (without after), then read all calls once (GET /v2/calls?after=), and go on from that cursor.',
  ),
);

export const listChanges: Route = route({
  surface: 'v2',
  scope: 'calls.read',
  quota: 'counted',
  forbidden:
    'This API key may not read calls here: it must be active, hold the scope calls.read, be allowed the workspace, and come from an address that it allows.',
  notFound: 'There are no such changes.',
  name: 'listChanges',
  path: '/changes',
  parseRequest: null,
  hasEtag: true,
  answer: async (ctx, { feed }) => {
    const { state } = ctx;
    if (feed === null) throw new Error('The route of the feed is served without a feed.');
    const { workspaceIds: ownWorkspaceIds } = apiKeyOf(ctx);
    const query = parseQuery(ctx.querystring);
    // K6: a foreign workspace is refused before any fault of the query.
    if (asksForForeign({ query, ownWorkspaceIds }, workspaceId)) return refuse(state, WORKSPACE_FORBIDDEN);
    const asked = strictQuery(query, PARAMETERS, (get) => ({
      after: get(after),
      limit: get(limit),
      narrowedTo: get(workspaceId),
    }));
    if (asked instanceof Problem) return refuse(state, asked);
    const place = asked.after === null ? null : readCursor(asked.after, ownWorkspaceIds);
    if (asked.after !== null && place === null) return refuse(state, CURSOR_INVALID);
    const wanted = asked.narrowedTo === null ? ownWorkspaceIds : [asked.narrowedTo];
    const read =
      place === 'foreign' ? null : feed.read({ after: place, limit: asked.limit, workspaces: ownWorkspaceIds, wanted });
    const page = read && (await state.redisWait.within(read).catch(refuseLate));
    if (page === null) return refuse(state, CURSOR_EXPIRED);
    const body = toBody(page, feed.isUnannounced(), (end) => writeCursor(end, ownWorkspaceIds));
    const headers = { 'Cache-Control': 'private, max-age=0, must-revalidate' };
    await respondWith(ctx, new Representation(body), headers, null);
  },
  summary: 'List changes',
  description:
    'What has changed since a cursor: read the calls and parts that it names again, and drop what is deleted. An event is visible once every read of the call and its parts answers the new state; lists follow within a second. Events are kept for days; a cursor that is too old is 400 `cursor_expired`. Poll it every few seconds, with `If-None-Match`: an answer without news is a 304. A query parameter that is unknown or breaks its rule is refused with 400.',
  parameters: PARAMETERS.map(({ openapi }) => openapi),
  failures: [400, 401, 403, 429, 500],
  response: changesPageSchema,
  success: 'The changes that follow the cursor.',
});

/** A read that waits too long for Redis is one that Redis does not answer. */
function refuseLate(error: unknown): never {
  if (!(error instanceof RedisTimeoutError)) throw error;
  throw new FeedUnavailableError(error.message, { cause: error });
}

function toBody(
  { events, place, hasMore }: FeedPage,
  unannounced: boolean,
  toCursor: (place: FeedPlace) => string,
): z.output<typeof changesPageSchema> {
  return {
    changes: events.map(({ id, kind, change, atMs }) => ({ id, kind, change, at: toTimestamp(atMs) })),
    cursor: toCursor(place),
    has_more: hasMore,
    unannounced,
  };
}
