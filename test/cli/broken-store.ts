/** The store that `doctor` looks at in tests: a sound one, and ways to break it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { EvaluationRecord } from '../../src/domain/records.ts';
import { answerFrom, findRoute } from '../../src/sample/routes.ts';
import { anEvaluation, aScorecard, aScoredCard, aTranscript, dealInsights, WORKSPACE_B } from '../support/records.ts';
import {
  createStoreServer,
  sendError,
  sendJson,
  type StoreHandler,
  type StoreServer,
} from '../support/store-server.ts';

const listSchema = z.object({ items: z.array(z.custom<EvaluationRecord>()), total: z.number() });
export type List = z.output<typeof listSchema>;

export const LIST = /\/internal\/v1\/evaluations$/;
/** A real record each, newest first: seven of the workspace, of two scorecards, the third and fourth of one millisecond. */
export const IDS = ['ev_7', 'ev_6', 'ev_5', 'ev_4', 'ev_3', 'ev_2', 'ev_1'];

export async function soundStore(): Promise<StoreServer> {
  const store = await createStoreServer();
  store.put({
    evaluations: [
      ...IDS.map((_id, index) =>
        anEvaluation({
          _id,
          title: `Call number ${index} of the Week`,
          createdAtMs: 1_772_600_000_000 - (index === 3 ? 2 : index) * 60_000,
          scorecardRef: { id: index % 2 === 0 ? 'sc_1' : 'sc_2', name: 'A scorecard' },
        }),
      ),
      anEvaluation({ _id: 'ev_9', state: 'SCORING', createdAtMs: 1_772_700_000_000 }),
      anEvaluation({ _id: 'ev_8', workspaceId: WORKSPACE_B }),
    ],
    transcripts: [aTranscript({ evaluationId: 'ev_6' }), aTranscript({ evaluationId: 'ev_2', format: null })],
    scoredCards: [aScoredCard({ evaluationId: 'ev_7' })],
    dealInsights: [dealInsights({ evaluationId: 'ev_1' })],
    scorecards: [aScorecard({ _id: 'sc_2' })],
  });
  return store;
}

/** The answer that the sound store would give. */
function soundAnswer(store: StoreServer, url = ''): ReturnType<typeof answerFrom> {
  const { pathname, searchParams } = new URL(url, store.url);
  return answerFrom(store, findRoute(pathname), searchParams);
}

function sendSound(store: StoreServer, request: IncomingMessage, response: ServerResponse): void {
  const { status, body } = soundAnswer(store, request.url);
  if (status === 200) sendJson(request, response, body);
  else sendText(response, status, JSON.stringify(body));
}

/** Lists are those of another query. */
export const asked =
  (change: (query: URLSearchParams) => void) =>
  (store: StoreServer): void =>
    changeLists(store, { change });

/** Lists are changed before they are sent. */
export const listed =
  (list: (list: List) => void) =>
  (store: StoreServer): void =>
    changeLists(store, { list });

/** The same, for the records of each list. */
export const relisted = (change: (items: readonly EvaluationRecord[]) => readonly EvaluationRecord[]) =>
  listed((list) => void (list.items = [...change(list.items)]));

function changeLists(
  store: StoreServer,
  { change, list }: { change?: (query: URLSearchParams) => void; list?: (list: List) => void },
): void {
  store.override(LIST, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', store.url);
    change?.(searchParams);
    const changed = listSchema.parse(answerFrom(store, findRoute(pathname), searchParams).body);
    list?.(changed);
    sendJson(request, response, changed);
  });
}

/** Those paths are answered by the handler instead. */
export const handled =
  (match: RegExp, handler: StoreHandler) =>
  (store: StoreServer): void =>
    void store.override(match, handler);

export const answered = (match: RegExp, status: number, text: string) =>
  handled(match, (_, response) => sendText(response, status, text));

export const failed = (match: RegExp, status: number, code: string) =>
  handled(match, (_, response) => sendError(response, status, code));

/** Every answer of those paths has the same ETag. */
export const oneEtag =
  (match: RegExp) =>
  (store: StoreServer): void =>
    void store.override(match, (request, response) => {
      const { status, body } = soundAnswer(store, request.url);
      response.writeHead(status, { etag: '"1"' }).end(JSON.stringify(body));
    });

/** Requests whose whole address matches are answered 503. */
export const inTrouble =
  (match: RegExp) =>
  (store: StoreServer): void =>
    void store.override(/./, (request, response) => {
      if (match.test(request.url ?? '')) return sendError(response, 503, 'DOWN');
      return sendSound(store, request, response);
    });

/** Its clock is so far ahead; null: it does not say. */
export const clockAhead = (aheadMs: number | null) =>
  handled(LIST, (_, response) => {
    response.sendDate = false;
    if (aheadMs !== null) response.setHeader('date', new Date(Date.now() + aheadMs).toUTCString());
    response.end('{"items":[],"total":0}');
  });

/** Searches do not find records that hold the texts; the first record has them, by these changes. */
export const unsearched =
  (texts: RegExp, changes: Partial<EvaluationRecord>) =>
  (store: StoreServer): void => {
    store.evaluations.set('ev_7', { ...anEvaluation({ _id: 'ev_7', createdAtMs: 1_772_600_000_000 }), ...changes });
    listed((list) => {
      if (store.requests.at(-1)?.query.has('q') !== true) return;
      list.items = list.items.filter((item) => !texts.test(JSON.stringify(item)));
    })(store);
  };

export function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status).end(text);
}

/** Every answer comes so late. `most`: how many calls were under way at most. */
export function slowDown(store: StoreServer, delayMs: number): { readonly most: () => number } {
  const load = { now: 0, most: 0 };
  store.override(/./, (request, response) => {
    load.now += 1;
    load.most = Math.max(load.most, load.now);
    setTimeout(() => {
      load.now -= 1;
      sendSound(store, request, response);
    }, delayMs);
  });
  return { most: () => load.most };
}
