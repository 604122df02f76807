/** The grammar of times. */
import { expect, test } from 'vitest';
import { asciiDigits } from '../../../src/transcript/digits.ts';
import { secondsOf, timeAt } from '../../../src/transcript/times.ts';

test.each([
  ['0:03', 3],
  ['1:02:22', 3742],
  ['00:00:01.250', 1.25],
  ['00:00:01,250', 1.25],
  ['01:01:40:13', 3700.13],
  ['00 : 00 : 01,000', 1],
  ['10:02 AM', 36_120],
  ['1:06:00 p.m.', 47_160],
  ['10:04:12\u202fPM', 79_452],
  ['上午10:04:12', 36_252],
  ['下午1:06:00', 47_160],
  ['오전 10:04:12', 36_252],
  ['10:04:12 UTC', 36_252],
  ['10:04:12 GMT+2', 36_252],
  ['10:04:12 Uhr', 36_252],
  ['2031-03-12T10:04:12.5+02:00', 36_252.5],
  ['2031-03-12 10:04:12', 36_252],
  ['2031/03/12 10:04:12', 36_252],
  ['12.3.2031, 10:04:12', 36_252],
  ['12 Mar 2031, 10:04:12', 36_252],
  ['12. März 2031 10:04:12', 36_252],
  ['Mar 12, 2031 10:04:12', 36_252],
  ['2031年3月12日 10:04:12', 36_252],
  ['2.3s', 2.3],
  ['0h 0m 3s', 3],
  ['1h 2m', 3720],
  ['10h04', 36_000 + 4],
  ['0 minutes 5 seconds', 5],
  ['1 minute, 9 seconds', 69],
  ['0时1分3秒', 63],
  ['٠٠:٠٣', 3],
  ['००:०३', 3],
  ['０：０３', 3],
  ['0:03 --> 0:05', 3],
  ['0:03 - 0:05', 3],
  ['0:03–0:05', 3],
  ['0:03 ~ 0:05', 3],
  ['0:03 to 0:05', 3],
])('%s', (text, seconds) => {
  for (const [open, close] of ['', '[]', '()', '【】', '<>'].map((pair) => [pair.slice(0, 1), pair.slice(1)])) {
    const written = asciiDigits(`${open}${text}${close}`);
    const time = timeAt(`${written} x`, 0, written.length + 2);
    expect([time?.end, time?.isInBrackets]).toEqual([written.length, open !== '']);
    expect(secondsOf(written)).toBeCloseTo(seconds);
  }
});

test.each(['[0.00 --> 1.52]', '0.860 --> 7.380', '\\[01:02:49.14\\]', '[0:03](https://video.example/?t=3)'])(
  '%s',
  (text) => {
    expect(timeAt(text, 0, text.length)?.end).toBe(text.length);
  },
);

test.each(['12', '12.5', '5 apples', '0:03ab', 'Nov', 'x 0:03', '[Music]', '1:2:3:4:5', '[12]'])(
  '%s is none',
  (text) => {
    expect(timeAt(text, 0, text.length)).toBe(null);
  },
);
