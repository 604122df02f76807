/** Bodies made to be slow to parse or to page. */
import type { TranscriptFormat } from '../../src/domain/vocabulary.ts';

export interface HostileBody {
  readonly name: string;
  readonly body: string;
  readonly declared: TranscriptFormat | null;
  /** How many turns it has. */
  readonly turns: number;
}

/** Numbers as short names, from `FIRST` on. */
function newName(i: number): string {
  return (i - FIRST).toString(36);
}

const FIRST = 10_000_000;

/** Bodies of about `units` UTF-16 units each. */
export function hostileBodies(units: number): HostileBody[] {
  const fill = (text: string, head = '', tail = ''): string => {
    return head + text.repeat(Math.floor((units - head.length - tail.length) / text.length)) + tail;
  };
  const count = (text: string): number => Math.floor(units / text.length);
  const cue = 'WEBVTT\n\n00:01.000 --> 00:02.000\n';
  const emptyCue = '0:0-->0:0\n';
  const utterance = '{"at":0,"text":""}';
  const numbered = `14${' '.repeat(60)}A.  x\n`;
  const tabs = '1:11:11:11\t\t\t\tA\t\t\t**\n';
  const padded = `0:03${' '.repeat(120)}x\n`;
  const halfDay = '安 上午10:04:12\n早\n\n';
  const voice = '0:0-->0:0\n<v A>x\n\n';
  /** As many different ones as fit. */
  const different = (line: (i: number) => string): string => {
    const lines: string[] = [];
    for (let i = FIRST, length = 0; length < units; i += 1) length += lines[lines.push(line(i)) - 1]?.length ?? 0;
    return lines.slice(0, -1).join('');
  };
  const lines = (text: string): Omit<HostileBody, 'name'> => ({ body: fill(text), declared: null, turns: count(text) });
  const times = different((i) => `0:03 ${newName(i)}: x\n`);
  const voices = different((i) => `0:0-->0:9\n<v ${newName(i)}>xy\n\n`);
  const names = different((i) => `${i}a: x\n`);
  const keys = different((i) => `{"k${i}":1,"at":0,"text":""},`);
  return [
    { name: '[', body: fill('['), declared: null, turns: 1 },
    { name: '[ declared as utterances', body: fill('['), declared: 'utterances_json', turns: 1 },
    { name: '[{"a":', body: fill('[{"a":'), declared: null, turns: 1 },
    { name: 'utterances nested within one', body: fill('[', '[{"at":0,"text":"","x":'), declared: null, turns: 1 },
    { name: 'one string of escapes', body: fill('\\"', '[{"at":0,"text":"', '"}]'), declared: null, turns: 1 },
    {
      name: 'utterances of nothing',
      body: fill(`${utterance},`, '[', utterance + ']'),
      declared: null,
      turns: count(`${utterance},`),
    },
    { name: ':', body: fill(':'), declared: 'speaker_text', turns: 1 },
    { name: 'colon and space', body: fill(': '), declared: 'speaker_text', turns: 1 },
    { name: 'speakers of nothing', body: fill('A: \n'), declared: null, turns: count('A: \n') },
    { name: 'one turn of lines', body: fill('a\n', 'A: b\n'), declared: null, turns: 1 },
    { name: 'one turn of CR LF lines', body: fill('a\r\n', 'A: b\n'), declared: null, turns: 1 },
    { name: 'lines of no format', body: fill('-\r'), declared: null, turns: count('-\r') },
    { name: 'line feeds', body: fill('\n'), declared: null, turns: 0 },
    { name: 'line feeds between two words', body: fill('\n', '-', '-'), declared: 'srt', turns: 2 },
    { name: 'spaces between two words', body: fill(' ', '-', '-'), declared: 'webvtt', turns: 1 },
    { name: '-->', body: fill('-->'), declared: 'srt', turns: 1 },
    { name: '--> on lines', body: fill('-->\n'), declared: 'webvtt', turns: count('-->\n') },
    {
      name: 'WebVTT of --> on lines',
      body: fill('-->\n\n', 'WEBVTT\n\n'),
      declared: null,
      turns: 1 + Math.floor((units - 8) / 5),
    },
    { name: 'a voice of many words', body: fill('a b ', `${cue}<v `, '>'), declared: null, turns: 1 },
    {
      name: 'an utterance with junk',
      body: fill('{"a":[1]},', '[{"at":0,"text":"x","junk":[', '{}]}]'),
      declared: null,
      turns: 1,
    },
    {
      name: 'white space in JSON',
      body: fill(' ', '[{"at":0,', '"text":"x"}]'),
      declared: null,
      turns: 1,
    },
    {
      name: 'an utterance of sentences',
      body: fill('{"text":"a"},', '[{"at":0,"sentences":[', '{}]}]'),
      declared: null,
      turns: 1,
    },
    { name: 'white lines within a turn', body: fill('\u00a0\n', 'A: b\n', 'c'), declared: 'speaker_text', turns: 1 },
    { name: 'time ranges in one cue', body: fill('0:0 --> 0:0 x\n', cue), declared: null, turns: 1 },
    {
      name: 'counters',
      body: fill('1\n\n', `1\n${emptyCue}`),
      declared: null,
      turns: Math.floor((units - 12) / 3),
    },
    { name: 'headers', body: fill('Anna  0:03\nx\n'), declared: null, turns: count('Anna  0:03\nx\n') },
    {
      name: 'lines that end like headers',
      body: fill(`${'a '.repeat(90)}0:03\n`),
      declared: null,
      turns: count(`${'a '.repeat(90)}0:03\n`),
    },
    {
      name: 'names of nobody',
      body: fill('a b c d e f g h i: \n'),
      declared: null,
      turns: count('a b c d e f g h i: \n'),
    },
    { name: 'times', body: fill('0:03\n', 'A: x\nA: y\n'), declared: null, turns: 2 },
    { name: 'a numbered line of spaces', body: fill(numbered), declared: null, turns: count(numbered) },
    { name: 'a time, tabs and asterisks', body: fill(tabs), declared: null, turns: count(tabs) },
    { name: 'times before spaces', body: fill(padded), declared: null, turns: count(padded) },
    { name: 'columns of a few words', body: fill('0:03\tA\tx\n'), declared: null, turns: count('0:03\tA\tx\n') },
    { name: 'days and zones', body: fill('2031-03-12T10:04:12.5+02:00 '), declared: null, turns: 1 },
    { name: 'half days', body: fill(halfDay), declared: null, turns: count(halfDay) },
    { name: 'digits of other scripts', ...lines('٠:٠٣ x\n') },
    { name: 'digits of other scripts in brackets', ...lines('[٠:٠٣] ا: x\n') },
    { name: 'amounts of time', ...lines('1s x\n') },
    { name: 'days and halves of them', ...lines('12 Mar 2031, 10:04 PM x\n') },
    { name: 'ranges of times', ...lines('0:03 - 0:05 Anna: x\n') },
    { name: 'names in brackets', ...lines('[A] x\n') },
    { name: 'names above times', ...lines('Anna\n0:03\nx\n\n') },
    { name: 'names above words', ...lines('Anna\nx\n\n') },
    { name: 'times before names', ...lines('0:03 Anna\nx\n') },
    { name: 'names in bold', ...lines('**A** x\n') },
    { name: 'names before dashes', ...lines('Anna - x\n') },
    { name: 'questions and answers', ...lines('Q.  x\n') },
    { name: 'Chinese names', ...lines('安：走\n') },
    { name: 'names that never recur', body: names, declared: null, turns: names.split('\n').length - 1 },
    { name: 'brackets in names', ...lines(`A${' [1'.repeat(30)}\n`) },
    {
      name: 'voices of cues',
      body: fill(voice, 'WEBVTT\n\n'),
      declared: null,
      turns: Math.floor((units - 8) / voice.length),
    },
    {
      name: 'members of ever new names',
      body: `[${keys.slice(0, -1)}]`,
      declared: null,
      turns: keys.split('{').length - 1,
    },
    { name: 'ever new names behind times', body: times, declared: null, turns: times.split('\n').length - 1 },
    {
      name: 'voices of ever new names',
      body: `WEBVTT\n\n${voices}`,
      declared: null,
      turns: voices.split('<').length - 1,
    },
    { name: 'time ranges with errors', ...lines('0:00-->0:9xxx\n') },
    { name: 'days before times', ...lines('1.2.31, 1:03 x\n') },
    { name: 'digits in brackets that are no times', ...lines('[٠ ٠٣] xyzuv\n') },
    { name: 'am that is a word', ...lines('1:03 am I xyz\n') },
    { name: 'asterisks', body: fill('**'), declared: null, turns: 1 },
    { name: 'spaces and a time', body: fill(' ', 'A', ' 0:03'), declared: null, turns: 1 },
    { name: 'notes', body: fill('NOTE\n\n', `WEBVTT\n\n${emptyCue}`), declared: null, turns: 1 },
    { name: 'WebVTT cues of nothing', body: fill(emptyCue, 'WEBVTT\n\n'), declared: null, turns: count(emptyCue) - 1 },
    { name: 'SubRip cues of nothing', body: fill(emptyCue), declared: null, turns: count(emptyCue) },
    { name: 'numbers on lines', body: fill('1\n'), declared: 'srt', turns: count('1\n') },
    { name: 'a cue of <', body: fill('<', cue), declared: null, turns: 1 },
    { name: 'a cue of <v', body: fill('<v ', cue), declared: null, turns: 1 },
    { name: 'a cue of voices', body: fill('<v A>', cue), declared: null, turns: 1 },
    { name: 'a cue of spaces and a voice', body: fill(' <v >', cue), declared: null, turns: 1 },
    { name: 'a cue of &amp;', body: fill('&amp;', cue), declared: null, turns: 1 },
    { name: 'a cue of &amp; and Cyrillic', body: fill('&amp;я', cue), declared: null, turns: 1 },
    { name: 'a cue of tags on CR LF lines', body: fill('<b>\r\n', cue), declared: null, turns: 1 },
    { name: 'combining marks', body: fill('\u0301', 'e'), declared: null, turns: 1 },
    { name: 'accented letters', body: fill('e\u0301'), declared: null, turns: 1 },
    { name: 'Devanagari', body: fill('क्षत्रि'), declared: null, turns: 1 },
    { name: 'flags', body: fill('🇩🇪'), declared: null, turns: 1 },
    { name: 'one emoji sequence', body: fill('👩\u200d'), declared: null, turns: 1 },
    { name: 'clusters of 600 marks', body: fill('\u0301'.repeat(600) + 'e'), declared: null, turns: 1 },
    { name: 'lone surrogates', body: fill('\ud83d').toWellFormed(), declared: null, turns: 1 },
  ];
}
