import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { transcriptSchema } from '../../../src/domain/records.ts';
import type { TranscriptRecord } from '../../../src/domain/records.ts';
import { createRandom } from '../../../src/sample/random.ts';
import { createSampleData, demo } from '../../../src/sample/index.ts';
import { DIALOGUE } from '../../../src/sample/vocabulary/dialogue.ts';
import { fill } from '../../../src/sample/vocabulary/grammar.ts';

const data = createSampleData({ seed: 1, evaluations: 3000 });
const transcripts = data.evaluations
  .filter(({ state, _id }) => state === 'COMPLETED' && _id !== data.hugeTranscriptId)
  .map(({ _id }) => transcriptSchema.parse(data.transcript(_id)));
const utterancesSchema = z.array(z.object({ speaker: z.string().nullable(), startMs: z.int(), text: z.string() }));
const bodies = transcripts.map(({ body }) => body);

/** A crude look at what a body is, independent of how it was written. */
function kindOf({ body }: TranscriptRecord): string {
  if (body === '') return 'empty';
  if (body.startsWith('WEBVTT')) return 'webvtt';
  if (body.startsWith('[{') || body.startsWith('[\n')) return 'utterances_json';
  if (/^1\r?\n\d\d:\d\d:\d\d,\d{3} --> /.test(body)) return 'srt';
  if (/^(?:\[\d\d:\d\d:\d\d\] )?\p{L}[^:\n]{1,40}: /u.test(body)) return 'speaker_text';
  return 'prose';
}

function turnsOf({ body }: TranscriptRecord, kind: string): number {
  const patterns: Record<string, RegExp> = {
    webvtt: / --> /g,
    srt: / --> /g,
    utterances_json: /"startMs":/g,
    speaker_text: /^(?:\[[\d:]{8}\] )?\p{L}[^:\n]{1,40}: /gmu,
  };
  const pattern = patterns[kind];
  return pattern === undefined ? 0 : (body.match(pattern)?.length ?? 0);
}

function format(record: TranscriptRecord): string {
  return `${kindOf(record)} sent as ${record.format}`;
}

describe('the transcripts of the sample', () => {
  test('are of all four formats with and without saying so, of no format, and empty', () => {
    expect([...new Set(transcripts.map(format))].toSorted()).toEqual([
      'empty sent as null',
      'empty sent as speaker_text',
      'empty sent as webvtt',
      'prose sent as null',
      'speaker_text sent as null',
      'speaker_text sent as speaker_text',
      'srt sent as null',
      'srt sent as srt',
      'utterances_json sent as null',
      'utterances_json sent as utterances_json',
      'webvtt sent as null',
      'webvtt sent as webvtt',
    ]);
  });

  test('have 20 to 400 turns where they are of a format', () => {
    const counts = transcripts.map((record) => turnsOf(record, kindOf(record))).filter((count) => count > 0);
    expect(Math.min(...counts)).toBe(20);
    expect(Math.max(...counts)).toBe(400);
    expect(counts.length).toBeGreaterThan(0.85 * transcripts.length);
  });

  test('hold emoji, right-to-left text, combining marks, control characters, half an emoji, and CR LF', () => {
    const has = (pattern: RegExp): boolean => bodies.some((body) => pattern.test(body));
    expect(has(/👨‍👩‍👧‍👦/u)).toBe(true);
    expect(has(/\p{Script=Hebrew}/u)).toBe(true);
    expect(has(/\p{Script=Arabic}/u)).toBe(true);
    expect(has(/e\u0301/)).toBe(true);
    expect(bodies.some((body) => body.includes('\u0007'))).toBe(true);
    expect(bodies.some((body) => !body.isWellFormed())).toBe(true);
    expect(has(/\r\n/)).toBe(true);
    expect(bodies.some((body) => body.includes('\0'))).toBe(false);
  });

  test('end their lines in one way only', () => {
    for (const body of bodies.filter((it) => it.includes('\r')))
      expect(body.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
  });

  test('name speakers who are among the people of the evaluation, or unknown', () => {
    const record = transcripts.find((it) => it.format === 'utterances_json');
    const evaluation = data.evaluations.find(({ _id }) => _id === record?.evaluationId);
    const utterances = utterancesSchema.parse(JSON.parse(record?.body ?? '[]'));
    expect(utterances.length).toBeGreaterThanOrEqual(20);
    const names = new Set(utterances.flatMap(({ speaker }) => speaker ?? []));
    expect(names.has(evaluation?.evaluatee.displayName ?? '')).toBe(true);
    expect(names.size).toBeLessThanOrEqual(3);
    const starts = utterances.map(({ startMs }) => startMs);
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
  });

  test('last as long as the recording', () => {
    const checked = transcripts
      .filter((record) => kindOf(record) === 'srt')
      .flatMap(({ evaluationId, body }) => {
        const seconds = data.evaluations.find(({ _id }) => _id === evaluationId)?.durationSeconds;
        const [, h, m, s] = /--> (\d\d):(\d\d):(\d\d),\d{3}\s[^>]*$/.exec(body) ?? [];
        return seconds === null || seconds === undefined
          ? []
          : [seconds - (Number(h) * 3600 + Number(m) * 60 + Number(s))];
      });
    expect(checked.length).toBeGreaterThan(100);
    for (const gap of checked) {
      expect(gap).toBeGreaterThanOrEqual(0);
      expect(gap).toBeLessThan(2);
    }
  });

  test('read like a call: it opens with a greeting, speaks of the account and of money, and ends with goodbye', () => {
    const { reportId } = demo(data);
    const { body } = transcriptSchema.parse(data.transcript(reportId));
    const account = data.evaluations.find(({ _id }) => _id === reportId)?.title.split(': ')[1] ?? '';
    const lines = body.trimEnd().split('\n');
    expect(lines[0]).toMatch(/: Hi .+, thanks for making the time today\./);
    expect(lines.at(-1)).toMatch(/: Bye\.$/);
    expect(body).toContain(account);
    expect(body).toMatch(/[$€£]\d{1,3}(?:,\d{3})+/);
    expect(body).not.toMatch(/[{}|]|undefined|NaN/);
  });

  test('leave no slot of a template open, nor anything that reads like another speaker', () => {
    const spoken = transcripts.filter(({ format: declared }) => declared === 'speaker_text').map(({ body }) => body);
    expect(spoken.filter((body) => /[{}|]|undefined|NaN/.test(body))).toEqual([]);
    const lines = Object.values(DIALOGUE).flat(2);
    expect(lines.length).toBeGreaterThan(150);
    for (const line of lines) expect(line).toMatch(/^[SBC] (?!.*: )\S.*$/);
  });

  test('of the one known id is huge: just under 2 MB, and whole to the last line', () => {
    const { body, format: declared } = transcriptSchema.parse(data.transcript(data.hugeTranscriptId ?? ''));
    expect(declared).toBe('speaker_text');
    expect(Buffer.byteLength(body)).toBeGreaterThan(1_990_000);
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(2_000_000);
    expect(body.isWellFormed()).toBe(true);
    expect(body.endsWith('\n')).toBe(true);
    expect(data.evaluations.find(({ _id }) => _id === data.hugeTranscriptId)?.state).toBe('COMPLETED');
  });
});

describe('the grammar of the sentences', () => {
  const random = createRandom(1);

  test('fills slots, ranges and choices, slots inside choices too', () => {
    expect(fill('{name} pays {7-7} [{coin}|{coin}]', { name: 'Ada', coin: ['crowns'] }, random)).toBe(
      'Ada pays 7 crowns',
    );
  });

  test('draws from the whole range and all choices', () => {
    const drawn = new Set(Array.from({ length: 200 }, () => fill('[a|b]{1-3}', {}, random)));
    expect([...drawn].toSorted()).toEqual(['a1', 'a2', 'a3', 'b1', 'b2', 'b3']);
  });

  test('refuses a slot that nobody knows', () => {
    expect(() => fill('{nobody}', {}, random)).toThrow(new RangeError('the sample knows no fact called nobody'));
  });
});
