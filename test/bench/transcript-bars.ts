/** The measurements of transcripts, and their bars. */
import { z } from 'zod';

/** Size of the bodies that are parsed and paged, in UTF-16 units; that of one made to be slow, in bytes of UTF-8. */
export const BODY_UNITS = 2_000_000;
/** Size of the bodies made to be slow: the largest that a store may send. */
export const HOSTILE_UNITS = 8_000_000;
export const BARS = {
  parseCpuMs: 100,
  growth: 12,
  holdMs: 15,
  pageRatio: 2,
  hostileCpuMs: 4000,
  hostileMB: 150,
};

const parsingCost = z.object({
  format: z.string(),
  ratio: z.number(),
  firstCpuMs: z.number(),
  holdCpuMs: z.number(),
  holdMs: z.number(),
});
const pagingCost = z.object({
  name: z.string(),
  lateMicros: z.number(),
  ratio: z.number(),
});
const hostileCost = z.object({
  name: z.string(),
  parseCpuMs: z.number(),
  quickestCpuMs: z.number(),
  tinyPagesCpuMs: z.number(),
  holdCpuMs: z.number(),
  holdMs: z.number(),
  heldMB: z.number(),
});
/**
 * Late pages are the last dozen. `quickestCpuMs` is the best of some rounds for a hostile body of `BODY_UNITS`. CPU times are of the process; a hold is the longest step, in CPU time of its thread and
 * by the clock. Memory is what a parsed transcript and its pages hold.
 */
export const costsSchema = z.object({
  parsing: z.array(parsingCost),
  paging: z.array(pagingCost),
  hostile: z.array(hostileCost),
});
export type Costs = z.output<typeof costsSchema>;

type Bar = readonly [what: string, value: number, limit: number];

/** The missed bars, in words. */
export function missedBars(costs: Costs): Readonly<Record<keyof Costs, readonly string[]>> {
  return {
    parsing: missed(
      costs.parsing.flatMap(({ format, ratio, firstCpuMs, holdCpuMs }): Bar[] => [
        [`${format}, to a tenth of it`, ratio, BARS.growth],
        [`${format}, parse`, firstCpuMs, BARS.parseCpuMs],
        [`${format}, hold`, holdCpuMs, BARS.holdMs],
      ]),
    ),
    paging: missed(
      costs.paging.map(({ name, ratio }): Bar => [`${name}, late pages to early ones`, ratio, BARS.pageRatio]),
    ),
    hostile: missed(
      costs.hostile.flatMap(({ name, parseCpuMs, quickestCpuMs, tinyPagesCpuMs, holdCpuMs, heldMB }): Bar[] => [
        [`${name}, ${BODY_UNITS / 1e6} MB at best`, quickestCpuMs, BARS.parseCpuMs],
        [`${name}, parse`, parseCpuMs, BARS.hostileCpuMs],
        [`${name}, pages of 2`, tinyPagesCpuMs, BARS.hostileCpuMs],
        [`${name}, hold`, holdCpuMs, BARS.holdMs],
        [`${name}, memory`, heldMB, BARS.hostileMB],
      ]),
    ),
  };
}

function missed(bars: readonly Bar[]): readonly string[] {
  return bars
    .filter(([, value, limit]) => value > limit)
    .map(([what, value, limit]) => `${what}: ${value} is over ${limit}`);
}
