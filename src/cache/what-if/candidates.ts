/** The times that are tried out. */

/**
 * From half a second to a day, each about three times the one before (so log-spaced, but round figures). Beside them runs
 * the time in force, whatever it is.
 */
export const CANDIDATE_FRESH_MS: readonly number[] = [
  500, 1500, 5000, 15_000, 45_000, 120_000, 360_000, 1_200_000, 3_600_000, 10_800_000, 28_800_000, 86_400_000,
];

/** The candidates and, last, the time in force. */
export const GHOSTS = CANDIDATE_FRESH_MS.length + 1;
/** Where the ghost of the time in force stands among them. */
export const IN_FORCE = CANDIDATE_FRESH_MS.length;
