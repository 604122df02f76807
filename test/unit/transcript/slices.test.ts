import { expect, test } from 'vitest';
import { TranscriptPager } from '../../../src/transcript/pager.ts';
import { parseSlices } from '../../../src/transcript/parse.ts';
import type { Slices } from '../../../src/transcript/slices.ts';
import { salesCall } from '../../support/transcript-calls.ts';
import { renderTranscript } from '../../support/transcript-render.ts';
import { parseTranscript, runSlices, slicesOf, textsOf } from '../../support/transcript-at-once.ts';

function* countTo(limit: number): Slices<number> {
  for (let i = 0; i < limit; i += 1) yield;
  return limit;
}

async function countPauses<T>(steps: Slices<T>): Promise<[T, number]> {
  let pauses = 0;
  const result = await runSlices(steps, async () => {
    pauses += 1;
    await Promise.resolve();
  });
  return [result, pauses];
}

test('slices run to the end, with a pause after each', async () => {
  expect(await countPauses(countTo(3))).toEqual([3, 3]);
});

test.each(['speaker_text', 'webvtt', 'srt', 'utterances_json'] as const)(
  'a long body of %s is read in many slices, to the same end as at once',
  async (format) => {
    const body = renderTranscript(salesCall(400_000), format);
    const [parsed, pauses] = await countPauses(parseSlices(body, format));
    const atOnce = parseTranscript(body, format);
    expect([parsed.form, parsed.text]).toEqual([atOnce.form, atOnce.text]);
    expect([textsOf(parsed), slicesOf(parsed)]).toEqual([textsOf(atOnce), slicesOf(atOnce)]);
    expect(pauses).toBeGreaterThanOrEqual(Math.floor(body.length / 65_536));
    // Every form looks at the body, some of them twice.
    expect(pauses).toBeLessThanOrEqual(Math.ceil(body.length / 4096));
  },
);

test('a cue of half a million tags and references is read in many slices', async () => {
  const body = `WEBVTT\n\n00:01.000 --> 00:02.000\n${'<b>&amp;\r\n'.repeat(50_000)}`;
  const [parsed, pauses] = await countPauses(parseSlices(body, 'webvtt'));
  expect(parsed.text).toBe('&\n'.repeat(50_000).trimEnd());
  expect(pauses).toBeGreaterThanOrEqual(20);
});

test('the index of a long text with tiny pages is made in many slices, and only once', async () => {
  const pager = new TranscriptPager(parseTranscript('x'.repeat(200_000), null));
  const request = { page: 150_000, pageSize: 1, maxChars: 1, raw: false };
  const [page, pauses] = await countPauses(pager.pageSlices(request));
  expect([page.text, page.totalPages]).toEqual(['x', 200_000]);
  expect(pauses).toBeGreaterThan(50);
  expect(await countPauses(pager.pageSlices(request))).toEqual([page, 0]);
});
