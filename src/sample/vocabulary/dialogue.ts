/**
 * What is said in the sample's calls, by part of the call. No line holds a colon followed by a space, which would read
 * as another speaker's name.
 */
import { DISCOVERY, OPENING } from './dialogue-discovery.ts';
import { CLOSING, DEMO, OBJECTIONS, PRICING } from './dialogue-selling.ts';
import type { Exchange } from './script.ts';

/** Opening and closing are said in their order, the rest in any. */
export const DIALOGUE = {
  opening: OPENING,
  discovery: DISCOVERY,
  demo: DEMO,
  objections: OBJECTIONS,
  pricing: PRICING,
  closing: CLOSING,
} as const;

/** Short answers that fall in between. */
export const BACKCHANNEL: Exchange = [
  'B Right.',
  'B Mm-hm.',
  'S Got it.',
  'C Sure.',
  'S That makes sense.',
  'B Yes, exactly.',
  'S Sorry, go ahead.',
  'C One second, I was on mute. Yes, agreed.',
  'B Hold on, someone is at the door. Okay, back.',
  'S Let me write that down.',
];

/** Lines in other scripts and with emoji, for calls that have them. */
export const RIGHT_TO_LEFT: Exchange = [
  'B שלום, אני אענה רגע בעברית, אנחנו צריכים תשובה עד יום ראשון.',
  'C نعم، الميزانية حوالي {20-90} ألف دولار، ولكن القرار ليس لي وحدي.',
  'B بصراحة السعر مرتفع قليلا (مقارنة بـ {rival}).',
];
export const EMOJI: Exchange = [
  'B Love it 🎉 {module} is exactly what we asked for 👍🏽',
  'C My kids say hi 👨‍👩‍👧‍👦 sorry about the noise.',
  'S Greetings to the office in Montréal 🇨🇦 and thanks for staying up late 🙏',
];
/** Decomposed letters (a base with combining marks) a control character, half an emoji, as broken recorders leave them. */
export const ODD_CHARACTERS: Exchange = [
  'B We call it the Zoe\u0308 re\u0301sume\u0301 internally, do not ask why.',
  'C The line broke up\u0007 for a second there.',
  'S I said page\u000Bbreak, not coffee break.',
  'B And then the chat cut off in the middle of a smiley \uD83D',
];
