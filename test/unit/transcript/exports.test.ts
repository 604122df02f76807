/** Exports as programs and people write them, all words made up: what a person reads in each (T10 to T12). */
import { expect, test } from 'vitest';
import { parseTranscript, textsOf } from '../../support/transcript-at-once.ts';

/** The turns, white space made single; null if nobody speaks in it. */
const EXPORTS: readonly (readonly [what: string, body: string, turns: readonly string[] | null])[] = [
  [
    'otter txt',
    'Weekly sync\nThu, Mar 13, 2031 10:02AM • 31:05\n\nSUMMARY KEYWORDS\nprice, plan, call\n\nSPEAKERS\nAnna Lee, Bo Chan\n\nAnna Lee  00:02\nGood morning. How are you?\n\nBo Chan  00:07\nFine, thanks. Shall we start?\n\nAnna Lee  00:12\nYes.\n\nTranscribed by https://example.com\n',
    [
      'Weekly sync Thu, Mar 13, 2031 10:02AM • 31:05',
      'SUMMARY KEYWORDS price, plan, call',
      'SPEAKERS Anna Lee, Bo Chan',
      'Anna Lee: Good morning. How are you?',
      'Bo Chan: Fine, thanks. Shall we start?',
      'Anna Lee: Yes. Transcribed by https://example.com',
    ],
  ],
  [
    'fireflies txt',
    'Anna Lee - 00:02\nGood morning. How are you?\n\nBo Chan - 00:07\nFine, thanks.\n\nAnna Lee - 00:12\nYes.\n',
    ['Anna Lee: Good morning. How are you?', 'Bo Chan: Fine, thanks.', 'Anna Lee: Yes.'],
  ],
  [
    'fireflies docx text',
    'Title: Sync\nDate: 13 Mar 2031\n\n00:00 Anna Lee: Good morning.\n00:07 Bo Chan: Fine, thanks.\n00:12 Anna Lee: Yes.\n',
    ['Title: Sync Date: 13 Mar 2031', 'Anna Lee: Good morning.', 'Bo Chan: Fine, thanks.', 'Anna Lee: Yes.'],
  ],
  [
    'fireflies md',
    '# Sync\n\n**Anna Lee** *[00:02]*: Good morning.\n\n**Bo Chan** *[00:07]*: Fine.\n\n**Anna Lee** *[00:12]*: Yes.\n',
    ['# Sync', 'Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: Yes.'],
  ],
  [
    'grain',
    'Sync with Acme\n\nhttps://example.com/recordings/1\n\nAnna Lee (00:02)\nGood morning.\n\nBo Chan (00:07)\nFine.\n\nAnna Lee (00:12)\nYes.\n',
    [
      'Sync with Acme',
      'https://example.com/recordings/1',
      'Anna Lee: Good morning.',
      'Bo Chan: Fine.',
      'Anna Lee: Yes.',
    ],
  ],
  [
    'fathom',
    'Sync - March 13\nVIEW RECORDING - 31 mins (No highlights): https://example.com/share/x\n\n---\n\n0:02 - Anna Lee (Acme)\n  Good morning.\n\n0:07 - Bo Chan\n  Fine.\n\n0:12 - Anna Lee (Acme)\n  Yes. ACTION ITEM: Send it - WATCH: https://example.com/share/x?t=12\n',
    [
      'Sync - March 13 VIEW RECORDING - 31 mins (No highlights): https://example.com/share/x',
      '---',
      'Anna Lee (Acme): Good morning.',
      'Bo Chan: Fine.',
      'Anna Lee (Acme): Yes. ACTION ITEM: Send it - WATCH: https://example.com/share/x?t=12',
    ],
  ],
  [
    'tldv',
    '[00:00:02] Anna Lee: Good morning.\n[00:00:07] Bo Chan: Fine.\n[00:00:12] Anna Lee: Yes.',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: Yes.'],
  ],
  [
    'avoma',
    'Anna Lee (Acme) 0:02 - 0:06\nGood morning.\n\nBo Chan (Us) 0:07 - 0:11\nFine.\n\nAnna Lee (Acme) 0:12 - 0:13\nYes.',
    ['Anna Lee (Acme): Good morning.', 'Bo Chan (Us): Fine.', 'Anna Lee (Acme): Yes.'],
  ],
  [
    'gong',
    '0:02 | Anna\nGood morning.\n\n0:07 | Bo\nFine.\n\n0:12 | Anna\nYes.',
    ['Anna: Good morning.', 'Bo: Fine.', 'Anna: Yes.'],
  ],
  [
    'rev',
    'Anna Lee (00:02):\nGood morning.\n\nBo Chan (00:07):\nFine.\n\nAnna Lee (00:12):\nYes.',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: Yes.'],
  ],
  [
    'rev bracket link',
    'Anna Lee: ([00:02](https://example.com/x?ts=2))\nGood morning.\n\nBo Chan: ([00:07](https://example.com/x?ts=7))\nFine.\n\nAnna Lee: ([00:12](https://example.com/x?ts=12))\nYes.',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: Yes.'],
  ],
  [
    'descript md',
    '**Anna:** [00:00:02] Good morning.\n\n**Bo:** [00:00:07] Fine.\n\n**Anna:** [00:00:12] Yes.',
    ['Anna: Good morning.', 'Bo: Fine.', 'Anna: Yes.'],
  ],
  [
    'trint',
    'Anna Lee [00:00:02] Good morning.\n\nBo Chan [00:00:07] Fine.\n\nAnna Lee [00:00:12] Yes.',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: Yes.'],
  ],
  [
    'sonix 2',
    'sync.mp3 Transcript\n\nSpeaker1 [00:00:02] Good morning.\n\nSpeaker2 [00:00:07] Fine.\n\nSpeaker1 [00:00:12] Yes.\n\nSonix is the best audio automated transcription service in 2031.',
    [
      'sync.mp3 Transcript',
      'Speaker1: Good morning.',
      'Speaker2: Fine.',
      'Speaker1: Yes. Sonix is the best audio automated transcription service in 2031.',
    ],
  ],
  [
    'temi',
    'Speaker 1:\t00:02\tGood morning.\n\nSpeaker 2:\t00:07\tFine.\n\nSpeaker 1:\t00:12\tYes.',
    ['Speaker 1: Good morning.', 'Speaker 2: Fine.', 'Speaker 1: Yes.'],
  ],
  [
    'happy scribe',
    '[00:00:02.10] - Anna Lee\nGood morning.\n\n[00:00:07.50] - Bo Chan\nFine.\n\n[00:00:12.00] - Anna Lee\nYes.',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: Yes.'],
  ],
  [
    'zoom chat',
    '10:02:12\t From  Anna Lee : Good morning\n10:03:15\t From  Bo Chan : Fine\n10:04:00\t From  Anna Lee : Yes',
    ['Anna Lee : Good morning', 'Bo Chan : Fine', 'Anna Lee : Yes'],
  ],
  [
    'zoom saved transcript',
    '[Anna Lee] 10:02:12\nGood morning.\n\n[Bo Chan] 10:02:17\nFine.\n\n[Anna Lee] 10:02:22\nYes.',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: Yes.'],
  ],
  [
    'zoom chat to',
    '10:02:12 From Anna Lee to Everyone:\n\tGood morning\n10:03:15 From Bo Chan to Everyone:\n\tFine\n10:04:00 From Anna Lee to Everyone:\n\tYes',
    ['Anna Lee: Good morning', 'Bo Chan: Fine', 'Anna Lee: Yes'],
  ],
  [
    'teams old docx',
    '0:0:2.120 --> 0:0:6.20\nAnna Lee\nGood morning.\n0:0:7.0 --> 0:0:9.50\nBo Chan\nFine.\n0:0:12.0 --> 0:0:13.0\nAnna Lee\nYes.',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: Yes.'],
  ],
  [
    'teams vtt voice',
    'WEBVTT\n\n8a1f-1/12-0\n00:00:02.120 --> 00:00:06.200\n<v Anna Lee>Good morning.</v>\n\n8a1f-1/13-0\n00:00:07.000 --> 00:00:09.500\n<v Bo Chan>Fine.</v>',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.'],
  ],
  [
    'teams minutes seconds',
    'Anna Lee\n0 minutes 2 seconds\nGood morning.\nBo Chan\n0 minutes 7 seconds\nFine.\nAnna Lee\n0 minutes 12 seconds\nYes.',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: Yes.'],
  ],
  [
    'meet doc',
    'Mar 13, 2031\nSync - Transcript\nAttendees\nAnna Lee, Bo Chan\n\nTranscript\n\n00:00:00\n\nAnna Lee: Good morning.\nBo Chan: Fine.\n\n00:05:00\n\nAnna Lee: Yes.\nBo Chan: So.\n\nMeeting ended after 00:06:10 👋\n',
    [
      'Mar 13, 2031 Sync - Transcript Attendees Anna Lee, Bo Chan',
      'Transcript',
      'Anna Lee: Good morning.',
      'Bo Chan: Fine.',
      'Anna Lee: Yes.',
      'Bo Chan: So. Meeting ended after 00:06:10 👋',
    ],
  ],
  [
    'webex txt',
    'Anna Lee    00:02\nGood morning.\nBo Chan    00:07\nFine.\nAnna Lee    00:12\nYes.',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: Yes.'],
  ],
  [
    'riverside',
    'Anna Lee (00:02.1)\nGood morning.\n\nBo Chan (00:07.55)\nFine.\n\nAnna Lee (00:12.005)\nYes.',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: Yes.'],
  ],
  [
    'whisper txt',
    '[00:00.000 --> 00:06.000]  Good morning.\n[00:07.000 --> 00:09.000]  Fine.\n[00:12.000 --> 00:13.000]  Yes.',
    ['Good morning.', 'Fine.', 'Yes.'],
  ],
  [
    'deposition',
    '                                                            12\n\n 1                      P R O C E E D I N G S\n 2          Q.    Please state your name.\n 3          A.    Anna Lee.\n 4          Q.    And where do you work?\n 5          A.    At Acme.\n 6               MR. CHAN:  Objection.\n 7               THE WITNESS:  I work there.\n 8          Q.    Since when?\n 9          A.    Since May.\n',
    [
      '12',
      'P R O C E E D I N G S',
      'Q: Please state your name.',
      'A: Anna Lee.',
      'Q: And where do you work?',
      'A: At Acme.',
      'MR. CHAN: Objection. THE WITNESS: I work there.',
      'Q: Since when?',
      'A: Since May.',
    ],
  ],
  [
    'hearing',
    '    The Chairman. The committee will come to order.\n    Thank you all.\n    Senator Lee. Thank you, Mr. Chairman.\n    I have a question.\n    Mr. Chan. I will answer it.\n    Senator Lee. Please.\n    Mr. Chan. It is so.\n    The Chairman. Thank you.\n',
    [
      'The Chairman: The committee will come to order. Thank you all.',
      'Senator Lee: Thank you, Mr. Chairman. I have a question.',
      'Mr. Chan: I will answer it.',
      'Senator Lee: Please.',
      'Mr. Chan: It is so.',
      'The Chairman: Thank you.',
    ],
  ],
  [
    'podcast html to text',
    "Episode 12: Prices\n\nANNA LEE: Welcome to the show. I'm Anna Lee.\n\nBO CHAN: And I'm Bo.\n\nLEE: Let's begin.\n\nCHAN: Yes.\n\n(SOUNDBITE OF MUSIC)\n\nLEE: So.\n\nCopyright © 2031 Radio. All rights reserved.\n",
    [
      'Episode 12: Prices',
      "ANNA LEE: Welcome to the show. I'm Anna Lee.",
      "BO CHAN: And I'm Bo.",
      "LEE: Let's begin.",
      'CHAN: Yes. (SOUNDBITE OF MUSIC)',
      'LEE: So. Copyright © 2031 Radio. All rights reserved.',
    ],
  ],
  [
    'bold questions',
    '**How did you begin?**\n\nI began with nothing.\n\n**And then?**\n\nThen it grew.\n\n**What now?**\n\nNow we rest.\n',
    null,
  ],
  [
    'irc',
    '10:02 <anna> good morning\n10:03 <bo> hi\n10:03 -!- cy [cy@host] has joined #x\n10:04 <anna> so\n',
    ['anna: good morning', 'bo: hi -!- cy [cy@host] has joined #x', 'anna: so'],
  ],
  [
    'weechat',
    '2031-03-13 10:02:12\tanna\tgood morning\n2031-03-13 10:02:15\tbo\thi\n2031-03-13 10:02:20\tanna\tso',
    ['anna: good morning', 'bo: hi', 'anna: so'],
  ],
  [
    'whatsapp ios',
    '[13/03/2031, 10:02:12] Anna Lee: Good morning\n[13/03/2031, 10:02:20] Bo: Hi\nHow are you?\n[13/03/2031, 10:03:00] Anna Lee: Fine',
    ['Anna Lee: Good morning', 'Bo: Hi How are you?', 'Anna Lee: Fine'],
  ],
  [
    'whatsapp android',
    '13/03/31, 10:02 - Messages are end-to-end encrypted. No one outside of this chat can read them.\n13/03/31, 10:02 - Anna Lee: Good morning\n13/03/31, 10:03 - Bo: Hi\n13/03/31, 10:04 - Anna Lee: Fine',
    [
      'Messages are end-to-end encrypted. No one outside of this chat can read them.',
      'Anna Lee: Good morning',
      'Bo: Hi',
      'Anna Lee: Fine',
    ],
  ],
  [
    'slack copy',
    'Anna Lee\n  10:02 AM\nGood morning\n10:03\nAll\nBo Chan\n  10:04 AM\nHi\nAnna Lee\n  10:05 AM\nFine',
    ['Anna Lee: Good morning All', 'Bo Chan: Hi', 'Anna Lee: Fine'],
  ],
  [
    'discord',
    'Anna — Today at 10:02 AM\nGood morning\n\nBo — Today at 10:03 AM\nHi\n\nAnna — Today at 10:04 AM\nFine',
    ['Anna: Good morning', 'Bo: Hi', 'Anna: Fine'],
  ],
  [
    'telegram',
    'Anna Lee, [13.03.2031 10:02]\nGood morning\n\nBo, [13.03.2031 10:03]\nHi\n\nAnna Lee, [13.03.2031 10:04]\nFine',
    ['Anna Lee: Good morning', 'Bo: Hi', 'Anna Lee: Fine'],
  ],
  [
    'youtube copy',
    '0:02\nGood morning and\n0:04\nwelcome to the\n0:06\nshow\n0:09\nso',
    ['Good morning and', 'welcome to the', 'show', 'so'],
  ],
  [
    'youtube accessible',
    '0:02\n2 seconds\nGood morning and\n0:04\n4 seconds\nwelcome to the\n1:06\n1 minute, 6 seconds\nshow',
    ['Good morning and', 'welcome to the', 'show'],
  ],
  [
    'granola',
    'Meeting Title: Sync\nDate: Mar 13\n\nTranscript:\n\nMe: Good morning.\nThem: Fine.\nMe: Yes.',
    ['Meeting Title: Sync Date: Mar 13', 'Transcript:', 'Me: Good morning.', 'Them: Fine.', 'Me: Yes.'],
  ],
  [
    'salesloft',
    '00:02 AL Anna Lee\nGood morning.\n00:07 BC Bo Chan\nFine.\n00:12 AL Anna Lee\nYes.',
    ['AL Anna Lee: Good morning.', 'BC Bo Chan: Fine.', 'AL Anna Lee: Yes.'],
  ],
  [
    'motley fool',
    'Prepared Remarks:\n\nOperator\n\nGood morning, and welcome.\n\nAnna Lee -- Chief Executive Officer\n\nThank you. We grew.\n\nBo Chan -- Chief Financial Officer\n\nIndeed we did.\n\nOperator\n\nThe first question.\n\nCy Diaz -- Example Bank -- Analyst\n\nHow much?\n\nBo Chan -- Chief Financial Officer\n\nA lot.\n\nAnna Lee -- Chief Executive Officer\n\nYes.',
    [
      'Prepared Remarks:',
      'Operator: Good morning, and welcome.',
      'Anna Lee -- Chief Executive Officer: Thank you. We grew.',
      'Bo Chan -- Chief Financial Officer: Indeed we did.',
      'Operator: The first question.',
      'Cy Diaz -- Example Bank -- Analyst: How much?',
      'Bo Chan -- Chief Financial Officer: A lot.',
      'Anna Lee -- Chief Executive Officer: Yes.',
    ],
  ],
  [
    'tactiq',
    '00:00:02.120,00:00:06.200\nAnna Lee: Good morning.\n\n00:00:07.000,00:00:09.500\nBo Chan: Fine.\n',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.'],
  ],
  ['arrow captions no names', '>> Good morning.\n>> Fine.\n>> Yes, so it\nis.\n', null],
  [
    'email thread',
    'From: Anna <a@x.example>\nTo: Bo <b@x.example>\nSubject: Call\n\nHi Bo,\nthe call: Tuesday.\n\nOn Thu, Mar 13, 2031 at 10:02 AM Bo <b@x.example> wrote:\n> Hi Anna,\n> when is the call?\n',
    null,
  ],
  [
    'names that are links',
    '[Anna Lee](https://video.example/1?t=3) Good morning.\n[Bo Chan](https://video.example/1?t=9) Fine.\n[Anna Lee](https://video.example/1?t=12) So.\n[Bo Chan](https://video.example/1?t=15) Yes.',
    ['Anna Lee: Good morning.', 'Bo Chan: Fine.', 'Anna Lee: So.', 'Bo Chan: Yes.'],
  ],
  ['todo list', '- [ ] Anna: send the plan\n- [x] Bo: call them\n- [ ] Anna: write it\n', null],
  ['yaml', 'speakers:\n  - name: Anna\n    role: rep\n  - name: Bo\n    role: buyer\n', null],
  [
    'yaml transcript',
    'transcript:\n  - speaker: Anna\n    text: Good morning.\n  - speaker: Bo\n    text: Fine.\n  - speaker: Anna\n    text: Yes.\n',
    null,
  ],
  ['setlist', '1. Anna - Song One\n2. Bo - Song Two\n3. Anna - Song Three\n', null],
  ['http headers', 'HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 12\nServer: x\n\nhello world\n', null],
  [
    'git log',
    'commit abc\nAuthor: Anna <a@x.example>\nDate:   Thu Mar 13 10:02:12 2031\n\n    Fix it\n\ncommit def\nAuthor: Bo <b@x.example>\nDate:   Thu Mar 13 11:02:12 2031\n\n    Fix it again\n',
    null,
  ],
  [
    'lrc-like',
    '[00:01.00]Good morning\n[00:03.50]hello there\n[00:06.00]and so on\n',
    ['Good morning', 'hello there', 'and so on'],
  ],
  [
    'csv semicolons',
    'Zeit;Sprecher;Text\n0:02;Anna;Guten Morgen.\n0:07;Bo;Gut.\n',
    ['Anna: Guten Morgen.', 'Bo: Gut.'],
  ],
  [
    'japanese',
    '佐藤（00:02）\nおはようございます。\n\n鈴木（00:07）\nはい。\n\n佐藤（00:12）\nでは。',
    ['佐藤: おはようございます。', '鈴木: はい。', '佐藤: では。'],
  ],
  [
    'chinese feishu2',
    '说话人1 00:00:02\n早上好。\n说话人2 00:00:07\n好的。\n说话人1 00:00:12\n是的。',
    ['说话人1: 早上好。', '说话人2: 好的。', '说话人1: 是的。'],
  ],
  [
    'korean clova',
    '참석자 1 00:02\n안녕하세요.\n\n참석자 2 00:07\n네.\n\n참석자 1 00:12\n그럼.',
    ['참석자 1: 안녕하세요.', '참석자 2: 네.', '참석자 1: 그럼.'],
  ],
];

test.each(EXPORTS)('T12: %s', (_what, body, turns) => {
  for (const ending of ['\n', '\r\n']) {
    const parsed = parseTranscript(body.replaceAll('\n', ending), null);
    const texts = textsOf(parsed).map((text) => text.replaceAll(/\s+/g, ' ').trim());
    expect(parsed.form === null ? null : texts).toEqual(turns);
  }
});
