/** The questions behind the endpoints of the calls surface. */
import type { Asks, ListAsked, RequestView, SingleAsked, SingleKind } from '../asked.ts';
import { forbidden, idOf, listQuery } from '../read.ts';
import {
  type CallsQuery,
  type CallTranscriptQuery,
  parseCallsQuery,
  parseCallTranscriptQuery,
  parseWorkspaceId,
  refuseParameters,
} from './query.ts';

export interface CallsAsked extends ListAsked {
  readonly page: CallsQuery;
}

export interface CallTranscriptAsked extends SingleAsked<'transcript'> {
  readonly page: CallTranscriptQuery;
  /** Names the page among all those of a transcript. */
  readonly form: string;
}

export const askCalls: Asks<CallsAsked> = (view) => {
  const parameters = view.query();
  const workspaceIds = workspacesFor(view, parseWorkspaceId(parameters));
  const page = parseCallsQuery(parameters);
  return { kind: 'list', query: listQuery(workspaceIds, page, page), page };
};

/** All of the caller's workspaces, or the one that the list is narrowed to, which must be one of them (K6). */
function workspacesFor(view: RequestView, narrowedTo: string | null): readonly string[] {
  if (narrowedTo === null) return view.workspaceIds();
  if (!view.maySee(narrowedTo)) throw forbidden(view.route, "workspaceId is not among the key's");
  return [narrowedTo];
}

export const askCallTranscript: Asks<CallTranscriptAsked> = (view) => {
  const query = parseCallTranscriptQuery(view.query());
  const { page, pageSize, maxChars, raw } = query;
  const form = `${page} ${pageSize} ${maxChars} ${raw}`;
  return { kind: 'transcript', id: idOf(view, 'callId'), workspaceIds: null, page: query, form };
};

/** These take no parameters. */
function single<K extends SingleKind>(kind: K, parameter: string): Asks<SingleAsked<K>> {
  return (view) => {
    refuseParameters(view.query());
    return { kind, id: idOf(view, parameter), workspaceIds: null };
  };
}

export const askCall = single('evaluation', 'callId');
export const askCallScorecard = single('scorecard', 'callId');
export const askRubric = single('rubric', 'scorecardId');
