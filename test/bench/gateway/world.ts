/** What the store of the benchmark holds. */
export const EVALUATIONS = 1000;
export const TRANSCRIPT_ID = 'ev_0';
export const TRANSCRIPT_BYTES = 2_000_000;
