/** The buckets and labels that several groups of metrics share. */

/** From half a millisecond, a hit in memory, to the longest a store call may take. */
export const SECONDS_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** The value of a label where there is nothing to tell. */
export const NONE = 'none';
