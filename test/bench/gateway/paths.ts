/** The data of the benchmark's store, and the measured reads. */
import { WORKSPACE_A } from '../../support/records.ts';

export const EVALUATIONS = 1000;
export const TRANSCRIPT_ID = 'ev_0';
export const TRANSCRIPT_BYTES = 2_000_000;

/** Its body has about 6.6 kB. */
export const LIST = listOf(8);
export const SINGLE = '/v2/calls/ev_7';
/** A page of some 20 kB out of 2 MB. */
export const TRANSCRIPT_PAGE = `/v2/calls/${TRANSCRIPT_ID}/transcript?pageSize=85&page=40`;
export const NEVER_SEEN = '/v2/calls/any_{n}';
/** Another list each time, of calls that were seen. */
export const UNSEEN_LIST = `${LIST}&scorecardId=00000000-0000-4000-8000-{n}`;

export function listOf(limit: number): string {
  return `/v1/workspaces/${WORKSPACE_A}/reports?limit=${limit}`;
}
