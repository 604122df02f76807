/** The options of `evalgate sync`. */

/** The parts that it may copy beside the calls. */
export const PARTS = ['transcript', 'scorecard'] as const;
export type Part = (typeof PARTS)[number];

export interface SyncOptions {
  readonly url: string;
  readonly keyFile?: string;
  readonly parts: readonly Part[];
  readonly once?: boolean;
  readonly every: number;
}
