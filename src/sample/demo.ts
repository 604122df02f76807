/** Ids for ready-made requests. */
import type { SampleData } from './data.ts';

export interface DemoIds {
  readonly workspaceId: string;
  readonly reportId: string;
  readonly callId: string;
  readonly scorecardId: string;
}

/** Ids with which every public read has something to show, all of one workspace. */
export function demo(data: SampleData): DemoIds {
  const [reportId, callId = reportId] = data.showcaseIds;
  const call = data.evaluations.find(({ _id }) => _id === callId);
  const scorecardId = call?.scorecardRef.id;
  if (reportId === undefined || callId === undefined || call === undefined || typeof scorecardId !== 'string') {
    throw new RangeError('a sample has at least one evaluation that is whole in every part');
  }
  return { workspaceId: call.workspaceId, reportId, callId, scorecardId };
}
