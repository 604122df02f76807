/** Reads a parsed transcript's columns as arrays of strings. */
import type { ParsedTranscript } from '../../src/transcript/turn-writer.ts';

export function textsOf(parsed: ParsedTranscript): string[] {
  return cut(parsed.text, parsed.textStarts, 1);
}

export function slicesOf(parsed: ParsedTranscript): string[] {
  return cut(parsed.body, parsed.sliceStarts, 0);
}

function cut(source: string, starts: Int32Array, gap: number): string[] {
  return [...starts.subarray(1)].map((next, i) => source.slice(starts[i], next - gap));
}
