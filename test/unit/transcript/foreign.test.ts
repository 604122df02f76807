/** Text that must not be taken for speech, because it is another format or none (T12), and loses no word then (T9). */
import { expect, test } from 'vitest';
import { parseTranscript } from '../../support/transcript-at-once.ts';

test.each([
  [
    'ASS',
    '[Script Info]\nTitle: x\n\n[Events]\nFormat: Start, End, Name, Text\nDialogue: 0,0:00:01.00,0:00:02.00,Anna,Hi.\nDialogue: 0,0:00:02.00,0:00:03.00,Bo,Ho.\nDialogue: 0,0:00:03.00,0:00:04.00,Anna,So.',
  ],
  [
    'events of ASS',
    'Dialogue: 0,0:00:01.00,0:00:02.00,Anna,,Hi.\nDialogue: 0,0:00:02.00,0:00:03.00,Bo,,Ho.\nDialogue: 0,0:00:03.00,0:00:04.00,Anna,,So.',
  ],
  ['lyrics', '[ti:Song]\n[ar: Anna]\n[00:01.00]Good morning\n[00:03.50]hello there\n[00:06.00]and so on'],
  ['CSV with a colon in a quoted cell', 'id,note,score\n1,"Anna: hi, all",5\n2,"Bo: ho",6\n3,"Anna: so",7'],
  ['CSV with a colon in a cell', 'date,event\n2031-03-12,Anna: joined\n2031-03-12,Bo: joined\n2031-03-13,Anna: left'],
  ['JSON that is cut off', '[\n{\n"speaker": "Anna",\n"text": "Hi."\n},\n{\n"speaker": "Bo",\n"text": "H'],
  ['lines in a string of JSON', '"Anna: Hi.\\nBo: Ho.\\nAnna: So."'],
  ["Python's repr", "[{'speaker': 'Anna', 'text': 'Hi.'},\n {'speaker': 'Bo', 'text': 'Ho.'}]"],
  ['XML', '<?xml version="1.0"?>\n<tt>\n<p begin="1s">Anna: Hi.</p>\n<p begin="2s">Bo: Ho.</p>\n</tt>'],
  ['a log', '2031-03-12 10:04:12 INFO started\n2031-03-12 10:04:13 WARN slow\n2031-03-12 10:04:15 INFO done'],
  [
    'labels below the words',
    '0:02\nHow are you?\nSpeaker: agent\n\n0:04\nFine.\nSpeaker: caller\n\n0:10\nGood.\nSpeaker: agent',
  ],
  ['records', '[first]\nowner: Anna\nstage: won\n\n[second]\nowner: Bo\nstage: lost'],
  ['levels of a log', 'INFO: started\nWARN: slow disk\nERROR: no disk\nINFO: stopped\nWARN: late'],
  ['levels in brackets', '[info] started\n[warn] slow disk\n[info] stopped\n[warn] late\n[info] gone'],
  ['prices', 'ACME: 10.3\nBETA: 20.1\nACME: 10.4\nBETA: 20.0\nACME: 10.5'],
  [
    'records of sentences',
    ['One', 'Two', 'Three'].map((one) => `Deal: ${one}\nNeed: They want it ${one}.\nBy: Next week.`).join('\n\n'),
  ],
  ['keys of an evaluation', 'Rapport: Warm.\nDiscovery: Few questions.\nObjections: None.\nClosing: No next step.'],
  ['a glossary', Array.from({ length: 30 }, (_, i) => `Term${i}: A thing that does ${i}.`).join('\n')],
  [
    'keys among names',
    'Deal: A\nLead: B\nSeller: C\nStatus: open.\nDeal: D\nLead: E\nStatus: lost.\nSeller: F\nStatus: won.',
  ],
  ['tags of HTML', '<b>Anna:</b> Hi.<br>\n<b>Bo:</b> Ho.<br>\n<b>Anna:</b> So.<br>\n<b>Bo:</b> Yes.<br>'],
  ['a diagram', 'Anna->>Bo: Hi\nBo->>Anna: Ho\nAnna->>Bo: So\nBo->>Anna: Yes'],
  ['declarations', 'export interface Call {\n  name: string;\n  text: string;\n}\nname: text\nname: text'],
  [
    'a log of JSON',
    '{"level":"info","timestamp":"1","message":"on"}\n{"level":"info","timestamp":"2","message":"off"}',
  ],
  [
    'products in JSON',
    '[{"name":"Chair","price":3,"content":"A chair."},{"name":"Table","price":9,"content":"A table."}]',
  ],
  ['keys alone', 'title: A call\nowner: Anna\nstage: won'],
  [
    'chapters',
    '00:00 - Introduction\n\nHello and welcome to this call.\n\n02:15 - The State of Things\n\nSo let us begin.\n\n07:40 - What Comes Next\n\nAnd now the plan.',
  ],
  [
    'chapters without blank lines',
    '00:00 Introduction\nHello and welcome to this call.\n02:15 Pricing\nSo let us begin.\n07:40 Questions\nAnd now the plan.',
  ],
  ['a list of chapters', '0:00 Intro\n1:20 Setting up\n5:40 Prices\n9:59 Next steps'],
  ['an agenda', '10:00 Welcome\n10:15 Prices\n11:00 Coffee\n11:30 Plan'],
  [
    'headings with colons',
    '# Setup: start\n\nDo this first.\n\n# Setup: next\n\nDo the rest.\n\n# Usage: start\n\nAnd use it.\n\n# Usage: next\n\nMore.',
  ],
  [
    'a list of topics',
    '# Summary\n\n- **Prices**: they rise.\n- **Plans**: two of them.\n- **Dates**: none yet.\n- **People**: Anna and Bo.\n- **Next**: a call.',
  ],
  [
    'a manual',
    'Ingredients: flour, eggs\nTime: 30 minutes\n\nStep 1: Mix.\nStep 2: Bake.\nStep 3: Eat.\n\nThen clean up.\nEnjoy the evening.',
  ],
  ['a style sheet', 'color: red;\nwidth: 4px;\ncolor: blue;\nwidth: 5px;\ncolor: green;'],
  ['prose with times', 'We met at 10:30 and left at 11:15. Then at 12:00 we ate.\n\nAt 13:00 we went home.'],
  ['cues on one line', '1 00:00:01,000 --> 00:00:02,000 Hi. 2 00:00:02,000 --> 00:00:04,000 Ho.'],
])('T12: %s is not understood, and says so', (_what, body) => {
  for (const ending of ['\n', '\r\n']) {
    const written = body.replaceAll('\n', ending);
    const parsed = parseTranscript(written, null);
    expect(parsed.form).toBe(null);
    expect(parsed.text.replaceAll(/\s+/g, ' ')).toBe(written.replaceAll(/\s+/g, ' '));
  }
});
