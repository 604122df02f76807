/** The measurements of transcripts, and their bars. */
import { z } from 'zod';

/** Size of the bodies that are parsed and paged, in UTF-16 units. */
export const BODY_UNITS = 2_000_000;
export const BARS = { parseCpuMs: 150, growth: 12, holdMs: 50, pageRatio: 2, hostileCpuMs: 2000, hostileMB: 150 };

const parsingCost = z.object({
  format: z.string(),
  turns: z.number(),
  smallCpuMs: z.number(),
  cpuMs: z.number(),
  ratio: z.number(),
  firstCpuMs: z.number(),
  holdCpuMs: z.number(),
  holdMs: z.number(),
});
const pagingCost = z.object({
  name: z.string(),
  pages: z.number(),
  indexCpuMs: z.number(),
  firstMicros: z.number(),
  lastMicros: z.number(),
  earlyMicros: z.number(),
  lateMicros: z.number(),
  ratio: z.number(),
});
const hostileCost = z.object({
  name: z.string(),
  turns: z.number(),
  parseCpuMs: z.number(),
  firstPageCpuMs: z.number(),
  tinyPagesCpuMs: z.number(),
  holdCpuMs: z.number(),
  holdMs: z.number(),
  heldMB: z.number(),
  toldMB: z.number(),
  peakMB: z.number(),
});
/**
 * Early and late pages are the first and the last dozen. CPU times are of the process; a hold is the longest step, in CPU time of its thread and by the clock. Memory: what a
 * parsed transcript and its pages hold, what the pager tells that they do, and what was in use right after the parse.
 */
export const costsSchema = z.object({
  parsing: z.array(parsingCost),
  paging: z.array(pagingCost),
  hostile: z.array(hostileCost),
});
export type Costs = z.output<typeof costsSchema>;

type Bar = readonly [what: string, value: number, limit: number];

/** The missed bars, in words. `slack` multiplies the bars, for a machine with other work. */
export function missedBars(costs: Costs, slack = 1): Readonly<Record<keyof Costs, readonly string[]>> {
  const missed = (bars: readonly Bar[]): readonly string[] =>
    bars
      .filter(([, value, limit]) => value > limit * slack)
      .map(([what, value, limit]) => `${what}: ${value} is over ${limit * slack}`);
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
      costs.hostile.flatMap(({ name, parseCpuMs, tinyPagesCpuMs, holdCpuMs, heldMB }): Bar[] => [
        [`${name}, parse`, parseCpuMs, BARS.hostileCpuMs],
        [`${name}, pages of 2`, tinyPagesCpuMs, BARS.hostileCpuMs],
        [`${name}, hold`, holdCpuMs, BARS.holdMs],
        [`${name}, memory`, heldMB, BARS.hostileMB],
      ]),
    ),
  };
}
