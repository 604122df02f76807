/** JSON of the common vendors (T10). */
import { expect, test } from 'vitest';
import { parseTranscript, slicesOf, textsOf } from '../../support/transcript-at-once.ts';
import { salesCall } from '../../support/transcript-calls.ts';

function read(value: unknown) {
  const parsed = parseTranscript(typeof value === 'string' ? value : JSON.stringify(value), null);
  return [parsed.form, ...textsOf(parsed)];
}

const words = [{ text: 'Hi', word: 'Hi', start: 0, end: 1, speaker: 'A' }];

test.each([
  [
    'AssemblyAI',
    { id: 'x', text: 'Hi. Ho.', words, utterances: [{ speaker: 'A', text: 'Hi.', start: 1, words }] },
    'A: Hi.',
  ],
  [
    'Deepgram, by utterances',
    {
      metadata: {},
      results: {
        channels: [{ alternatives: [{ transcript: 'hi', words }] }],
        utterances: [{ start: 0.1, transcript: 'Hi.', speaker: 0, words }],
      },
    },
    '0: Hi.',
  ],
  [
    'Deepgram, by paragraphs',
    {
      results: {
        channels: [
          {
            alternatives: [
              {
                transcript: 'hi',
                paragraphs: {
                  transcript: 'hi',
                  paragraphs: [
                    {
                      sentences: [
                        { text: 'Hi.', start: 0 },
                        { text: 'Ho.', start: 1 },
                      ],
                      speaker: 1,
                      start: 0,
                    },
                  ],
                },
              },
            ],
          },
        ],
      },
    },
    '1: Hi. Ho.',
  ],
  [
    'Whisper',
    { text: 'Hi.', segments: [{ id: 0, start: 0, end: 1, text: 'Hi.', tokens: [1, 2] }], language: 'en' },
    'Hi.',
  ],
  [
    'WhisperX',
    { segments: [{ start: 0, text: 'Hi.', words, speaker: 'SPEAKER_00' }], word_segments: words },
    'SPEAKER_00: Hi.',
  ],
  [
    'Fireflies',
    {
      data: {
        transcript: {
          title: 'x',
          sentences: [{ index: 0, speaker_name: 'Anna', speaker_id: 0, text: 'Hi.', start_time: 1 }],
        },
      },
    },
    'Anna: Hi.',
  ],
  ['Fireflies, exported', [{ sentence: 'Hi.', startTime: '00:01', speaker_name: 'Anna', speaker_id: 0 }], 'Anna: Hi.'],
  ['RingCentral', { utterances: [{ speakerId: '2', start: 1, text: 'Hi.', wordTimings: words }] }, '2: Hi.'],
  [
    'Fathom',
    { transcript: [{ speaker: { display_name: 'Anna', matched: null }, text: 'Hi.', timestamp: '00:00:05' }] },
    'Anna: Hi.',
  ],
  [
    'Gladia',
    {
      result: { transcription: { full_transcript: 'Hi.', utterances: [{ text: 'Hi.', start: 0, speaker: 0, words }] } },
    },
    '0: Hi.',
  ],
  [
    'HubSpot',
    {
      id: 1,
      transcriptUtterances: [
        { id: 9, speaker: { id: 's', name: 'Anna', email: null }, text: 'Hi.', startTimeMillis: 1 },
      ],
    },
    'Anna: Hi.',
  ],
  [
    'Recall.ai',
    [{ participant: { id: 1, name: 'Anna' }, words: [{ text: 'Hi' }, { text: 'Bo.', start: { relative: 1 } }] }],
    'Anna: Hi Bo.',
  ],
  [
    'Rev',
    {
      monologues: [{ speaker: 0, elements: [{ value: 'Hi', ts: 1 }, { value: ' ' }, { value: 'Bo' }, { value: '.' }] }],
    },
    '0: Hi Bo.',
  ],
  [
    'Amazon Transcribe',
    {
      results: {
        transcripts: [{ transcript: 'Hi.' }],
        speaker_labels: { segments: [{ start_time: '0.1', speaker_label: 'spk_0', items: [] }] },
        audio_segments: [{ id: 0, transcript: 'Hi.', start_time: '0.1', speaker_label: 'spk_0', items: [0] }],
      },
    },
    'spk_0: Hi.',
  ],
  ['tl;dv', { meetingId: 'x', data: [{ speaker: 'Anna', text: 'Hi.', startTime: 0 }] }, 'Anna: Hi.'],
  ['whisper.cpp', { result: { language: 'en' }, transcription: [{ offsets: { from: 0, to: 9 }, text: 'Hi.' }] }, 'Hi.'],
  [
    'Amazon Call Analytics',
    { Transcript: [{ Content: 'Hi.', Items: [{ Content: 'Hi' }], BeginOffsetMillis: 0, ParticipantRole: 'AGENT' }] },
    'AGENT: Hi.',
  ],
  [
    'Aircall',
    { content: { utterances: [{ start_time: 1, text: 'Hi.', participant_type: 'internal', user_id: 7 }] } },
    'internal: Hi.',
  ],
  [
    'Webex',
    { items: [{ personName: 'Anna', personEmail: 'a@example.com', text: 'Hi.', offsetMillisecond: 9 }] },
    'Anna: Hi.',
  ],
  ['a timeline of Zoom', { timeline: [{ ts: '00:01', text: 'Hi.', users: [{ username: 'Anna' }] }] }, 'Anna: Hi.'],
  [
    'Dialpad',
    {
      lines: [
        { name: 'Anna', content: 'Hi.', time: '10:04', type: 'transcript' },
        { name: 'Anna', content: 'price_inquiry', time: '10:05', type: 'moment' },
      ],
    },
    'Anna: Hi.',
  ],
  [
    'Azure',
    {
      combinedRecognizedPhrases: [{ channel: 0, display: 'Hi.' }],
      recognizedPhrases: [{ speaker: 1, offset: 'PT1S', nBest: [{ display: 'Hi.' }, { display: 'High.' }] }],
    },
    '1: Hi.',
  ],
  [
    'entries of Meet',
    { transcriptEntries: [{ name: 'records/x/entries/1', participant: 'records/x/p/1', text: 'Hi.', startTime: 'x' }] },
    'records/x/p/1: Hi.',
  ],
  [
    'Gong',
    { callTranscripts: [{ callId: 1, transcript: [{ speakerId: '7', sentences: [{ start: 1, text: 'Hi.' }] }] }] },
    '7: Hi.',
  ],
  [
    'Google',
    {
      results: [
        { alternatives: [{ transcript: 'Hi.', words: [{ startTime: '0s', word: 'Hi.' }] }], resultEndTime: '1s' },
      ],
    },
    'Hi.',
  ],
  ['times as objects', [{ speaker: 'Anna', text: 'Hi.', start: { seconds: '1' } }], 'Anna: Hi.'],
  ['words of null', [{ speaker: 'Anna', text: null }], 'Anna: '],
  ['words of null and others', [{ speaker: 'Anna', text: null, content: 'Hi.' }], 'Anna: Hi.'],
  [
    'a speaker of any form',
    [{ speaker: 'the VP (EMEA), who said: "hello!"', startMs: 0, text: 'a' }],
    'the VP (EMEA), who said: "hello!": a',
  ],
  ['a speaker of null', [{ speaker: null, text: 'b\r\nc' }], 'b\r\nc'],
  ['an empty speaker', [{ speaker: '', text: 'b' }], 'b'],
  ['a time only', [{ start_time: 3, content: 'b' }], 'b'],
])('%s', (_what, value, text) => {
  for (const body of [JSON.stringify(value), `\ufeff\n${JSON.stringify(value, null, 2)}\r\n`])
    expect(read(body)).toEqual(['json', text]);
});

test('T10: of several lists one is the transcript, all of the same place together', () => {
  const one = { utterances: [{ speaker: 1, text: 'x' }] };
  const other = { utterances: [{ speaker: 2, text: 'y' }] };
  expect(read({ a: one, b: other })).toEqual(['json', '1: x']);
  expect(read({ chapters: [one, other] })).toEqual(['json', '1: x', '2: y']);
});

const SAID = ['json', 'A: Hi there.', 'B: Ho.'];
const [HI, THERE, HO] = ['Hi', 'there', 'Ho'];
test.each([
  [
    'Soniox',
    {
      tokens: [
        { text: HI, start_ms: 1, speaker: 'A' },
        { text: ' th', start_ms: 2, speaker: 'A' },
        { text: 'ere', start_ms: 3, speaker: 'A' },
        { text: '.', start_ms: 4, speaker: 'A' },
        { text: ` ${HO}`, start_ms: 5, speaker: 'B' },
        { text: '.', start_ms: 6, speaker: 'B' },
      ],
    },
  ],
  [
    'Speechmatics',
    {
      results: [HI, THERE, '.', HO, '.'].map((content, i) => ({
        type: content === '.' ? 'punctuation' : 'word',
        start_time: i,
        alternatives: [{ content, speaker: i < 3 ? 'A' : 'B' }],
      })),
    },
  ],
  [
    'Google, with speakers',
    {
      results: [
        { alternatives: [{ transcript: 'Hi there. Ho.' }], resultEndTime: '3s' },
        {
          alternatives: [
            {
              words: ['Hi', 'there.', 'Ho.'].map((word, i) => ({
                startTime: `${i}s`,
                word,
                speakerTag: i < 2 ? 'A' : 'B',
              })),
            },
          ],
        },
      ],
    },
  ],
  [
    'Amazon Transcribe, speakers in a list of their own',
    {
      results: {
        transcripts: [{ transcript: 'Hi there. Ho.' }],
        speaker_labels: {
          segments: [
            {
              start_time: '0.0',
              end_time: '1.9',
              speaker_label: 'A',
              items: [{ start_time: '0.0', speaker_label: 'A' }],
            },
            { start_time: '2.0', end_time: '3.0', speaker_label: 'B', items: [] },
          ],
        },
        items: [
          { type: 'pronunciation', start_time: '0.0', alternatives: [{ content: HI }] },
          { type: 'pronunciation', start_time: '1.0', alternatives: [{ content: THERE }] },
          { type: 'punctuation', alternatives: [{ content: '.' }] },
          { type: 'pronunciation', start_time: '2.0', alternatives: [{ content: HO }] },
          { type: 'punctuation', alternatives: [{ content: '.' }] },
        ],
      },
    },
  ],
])('T10: single words are joined to turns while the speaker stays the same: %s', (_what, value) => {
  expect(read(value)).toEqual(SAID);
});

test('T10: an object on each line', () => {
  expect(read('{"speaker":"A","text":"Hi there."}\n{"speaker":"B","text":"Ho."}\n')).toEqual(SAID);
  expect(read('{"speaker":"A","text":"Hi there."}\n{"speaker":"B",').at(0)).toBe(null);
});

test('T10: a translation and highlights are not read beside the transcript', () => {
  const utterances = [
    { speaker: 'A', start: 1, text: 'Hi there.' },
    { speaker: 'B', start: 2, text: 'Ho.' },
  ];
  const french = utterances.map((utterance, i) => ({ ...utterance, text: ['Salut à vous.', 'Oh.'][i] }));
  expect(read({ transcription: { utterances }, translation: { results: [{ utterances: french }] } })).toEqual(SAID);
  expect(
    read({ highlights: { segments: [{ start: 2, speaker: 'B', text: 'Ho.' }] }, transcript: { segments: utterances } }),
  ).toEqual(SAID);
});

test('T2a: without utterances it is a call without words, unless other words stand beside the empty list', () => {
  expect(read({ utterances: [], text: '' })).toEqual(['json']);
  const body = JSON.stringify({ id: 'x', text: 'Hi. Ho.', utterances: [] });
  expect(read(body)).toEqual([null, body]);
});

test('T1: an escaped lone surrogate becomes U+FFFD, two escaped halves a character, in long strings too', () => {
  expect(read('[{"speaker":"A\\udc00","text":"x\\ud83d"},{"at":1,"text":"\\ud83d\\ude00"}]')).toEqual([
    'json',
    'A\ufffd: x\ufffd',
    '😀',
  ]);
  const long = '\\ud83d\\ude00\\"\\\\'.repeat(20_000);
  expect(read(`[{"at":1,"text":"${long}"}]`)).toEqual(['json', '😀"\\'.repeat(20_000)]);
});

test('T7: slices begin at the brace of their utterance', () => {
  const body = ' [ {"at":1,"text":"}{"} ,\n{"at":1,"text":"\\\\\\"]"}, {"at":1,"text":"","x":[{}]} ] \n';
  const parsed = parseTranscript(body, 'utterances_json');
  expect(slicesOf(parsed)).toEqual([
    ' [ {"at":1,"text":"}{"} ,\n',
    '{"at":1,"text":"\\\\\\"]"}, ',
    '{"at":1,"text":"","x":[{}]} ] \n',
  ]);
  expect(textsOf(parsed)).toEqual(['}{', '\\"]', '']);
});

const ONE = '{"at":1,"text":"x"}';
test.each([
  '[',
  `[${ONE}`,
  `[${ONE},]`,
  `[,${ONE}]`,
  `[${ONE}${ONE}]`,
  `[${ONE}] x`,
  `[${ONE}][]`,
  `{"utterances":[${ONE}]`,
  `{"utterances":[${ONE}],}`,
  '{"products":[{"name":"Chair","text":"Red."}]}',
  '[{"text":"x"}]',
  '[{"text":"x","topic":"price","tokens":[1],"sentiment":"POSITIVE"}]',
  '[{"at":1,"text":1}]',
  '[{"speaker":"A"}]',
  '[null]',
  ONE,
  '"x"',
  "[{'text':'x'}]",
  '[{"at":1,"text":"x",}]',
  '[{"at":1,"text":"\n"}]',
  `[{"at":1,"text":"x","deep":${'['.repeat(70)}${']'.repeat(70)}}]`,
])('%s is not utterances', (body) => {
  expect(parseTranscript(body, 'utterances_json').form).not.toBe('json');
});

test('T11: lines of JSON without utterances are nobody', () => {
  const body = '[\n{\n"speaker": "Anna",\n"phrase": "Hi."\n},\n{\n"speaker": "Bo",\n"phrase": "Ho."\n}\n]\n';
  expect(read(body)).toEqual([null, body.trimEnd()]);
  expect(parseTranscript('[{"participant": {"name": "Anna"}, "phrase": "Hi."}]', null).form).toBe(null);
});

test('T10: an object without words among utterances is an event, most of them without words are no transcript', () => {
  const utterances = salesCall(200_000, 5).map((turn) => JSON.stringify({ ...turn, startMs: 0 }));
  expect(parseTranscript(`[${utterances.join(',')}]`, null).turnCount).toBe(utterances.length);
  expect(parseTranscript(`[${utterances.join(',')},{"speaker":"A"}]`, null).turnCount).toBe(utterances.length);
  expect(parseTranscript('[{"event":"join","at":1},{"event":"leave","at":2},{"at":3,"text":"x"}]', null).form).toBe(
    null,
  );
});
