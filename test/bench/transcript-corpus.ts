/**
 * Walks every transcript of a corpus in each of the four formats and compares with the turns it was made from.
 * Usage: node test/bench/transcript-corpus.ts FILE, where FILE holds JSON lines `{"turns": [{"speaker", "text"}]}`.
 * Exits with status 1 on any fault.
 */
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { TRANSCRIPT_FORMATS, type TranscriptFormat } from '../../src/domain/records.ts';
import { TranscriptPager } from '../../src/transcript/pager.ts';
import { parseTranscript } from '../../src/transcript/parse.ts';
import { countPoints, oraclePages } from '../support/transcript-oracle.ts';
import { slicesOf, textsOf } from '../support/transcript-read.ts';
import { renderTranscript, segmentText, type SpokenTurn } from '../support/transcript-render.ts';

const meetingSchema = z.object({ turns: z.array(z.object({ speaker: z.string().nullable(), text: z.string() })) });

const LIMITS = [
  { pageSize: 100, maxChars: 50_000 },
  { pageSize: 200, maxChars: 50_000 },
  { pageSize: 7, maxChars: 50_000 },
  { pageSize: 200, maxChars: 997 },
  { pageSize: 3, maxChars: 40 },
];

const tally = { walks: 0, pages: 0, faults: 0 };

function fault(what: string): void {
  tally.faults += 1;
  if (tally.faults <= 20) console.error(`fault: ${what}`);
}

function same(found: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(found, expected)) fault(what);
}

function checkWalk(
  pager: TranscriptPager,
  segments: readonly string[],
  limits: (typeof LIMITS)[number],
  raw: boolean,
): void {
  const what = JSON.stringify({ ...limits, raw });
  const expected = oraclePages(segments, raw ? '' : '\n', limits.pageSize, limits.maxChars);
  const whole: string[] = [];
  let raws = '';
  for (const [i, oracle] of expected.entries()) {
    const page = pager.page({ page: i + 1, ...limits, raw });
    same(page, oracle, `page ${i + 1} of ${what}`);
    if (countPoints(page.text) > limits.maxChars || !page.text.isWellFormed())
      fault(`text of page ${i + 1} of ${what}`);
    for (const { index, text } of page.segments) whole[index] = (whole[index] ?? '') + text;
    raws += page.text;
    tally.pages += 1;
  }
  same(whole, segments, `the segments of ${what}`);
  if (raw) same(raws, pager.body, `the body of ${what}`);
  tally.walks += 1;
}

function checkMeeting(turns: readonly SpokenTurn[], format: TranscriptFormat): void {
  for (const isVerbose of [true, false]) {
    for (const lineEnding of ['\n', '\r\n', '\r'] as const) {
      const body = renderTranscript(turns, format, { lineEnding, isVerbose });
      for (const declared of [format, null]) {
        const parsed = parseTranscript(body, declared);
        same(parsed.format, format, `format of a body of ${format} declared as ${declared}`);
        same(textsOf(parsed), turns.map(segmentText), `turns of a body of ${format} declared as ${declared}`);
        same(slicesOf(parsed).length, turns.length, `slices of a body of ${format}`);
        if (lineEnding === '\r' || declared === null) continue;
        const pager = new TranscriptPager(parsed);
        for (const limits of LIMITS) {
          checkWalk(pager, textsOf(parsed), limits, false);
          checkWalk(pager, slicesOf(parsed), limits, true);
        }
      }
    }
  }
}

const [path] = process.argv.slice(2);
if (path === undefined) {
  console.error('Usage: node test/bench/transcript-corpus.ts FILE');
  process.exit(2);
}
const meetings = readFileSync(path, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => meetingSchema.parse(JSON.parse(line)));
for (const format of TRANSCRIPT_FORMATS) {
  const before = { ...tally };
  for (const { turns } of meetings) checkMeeting(turns, format);
  const walks = tally.walks - before.walks;
  console.log(
    `${format}: ${meetings.length} transcripts, ${walks} walks, ${tally.pages - before.pages} pages, ${tally.faults - before.faults} faults`,
  );
}
const turnCount = meetings.reduce((count, { turns }) => count + turns.length, 0);
console.log(`${meetings.length} transcripts of ${turnCount} turns, ${tally.faults} faults in all`);
process.exitCode = tally.faults === 0 && meetings.length > 0 ? 0 : 1;
