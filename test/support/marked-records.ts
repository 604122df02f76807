/** Records that show whose they are, and what an answer shows of them: for tests that look for others' data. */
import type { Reply } from './gateway.ts';
import { anEvaluation, aScorecard, aScoredCard, aTranscript, dealInsights } from './records.ts';
import type { StoreServer } from './store-server.ts';

interface Marked {
  readonly id: string;
  readonly workspaceId: string;
  /** Stands in every text. */
  readonly marker: string;
}

export function putMarkedEvaluation(
  store: StoreServer,
  { id, workspaceId, marker, scorecardId }: Marked & { readonly scorecardId: string },
): void {
  const part = { evaluationId: id, workspaceId };
  store.put({
    evaluations: [
      anEvaluation({
        _id: id,
        workspaceId,
        title: marker,
        ownerUserId: marker,
        source: marker,
        scorecardRef: { id: scorecardId, name: marker },
        evaluatee: {
          userId: marker,
          displayName: marker,
          givenName: marker,
          email: `${marker}@example.com`,
          avatar: marker,
        },
        people: [{ name: marker, email: null, spoke: true, attended: true }],
        crmLinks: [{ objectType: 'deal', externalId: marker, label: marker, href: marker }],
      }),
    ],
    transcripts: [aTranscript({ ...part, body: `Riley: ${marker}\nSam: ${`${marker} `.repeat(100)}` })],
    scoredCards: [aScoredCard({ ...part, scorecard: { name: marker, sections: [] } })],
    dealInsights: [dealInsights({ ...part, permalink: marker, insights: { marker } })],
  });
}

export function putMarkedScorecard(store: StoreServer, { id, workspaceId, marker }: Marked): void {
  store.put({ scorecards: [aScorecard({ _id: id, workspaceId, name: marker, rubric: { marker } })] });
}

/** Body and headers. `Link` repeats the reader's own search, which is left out of it. */
export function shownBy(
  path: string,
  { text, headers: { link, ...headers } }: Pick<Reply, 'text' | 'headers'>,
): string {
  const search = new URLSearchParams(path.split('?')[1]).get('search');
  const links = search === null ? link : String(link).replaceAll(new URLSearchParams({ search }).toString(), '');
  return text + JSON.stringify({ ...headers, link: links });
}
