/** One utterance, or one word, of a JSON transcript: which of its members are the words, the speaker and the time. */

/** Members in order of preference, in small letters without underscores. */
const WORDS: readonly string[] =
  'text|transcript|body|content|spokentext|sentence|utterance|display|message|caption|punctuatedword|word|value'.split(
    '|',
  );
const SPEAKERS: readonly string[] =
  'speakername|speakerdisplayname|personname|speaker|participantname|participant|user|username|users|name|displayname|participantrole|role|speakerid|speakerlabel|speakertag|participanttype|participantid|userid'.split(
    '|',
  );
/** Members of a speaker that is an object. */
const NAMES: readonly string[] = 'name|displayname|username|speakerlabel|label|speaker|id|email'.split('|');
/** `topic`, `tokens` and `sentiment` are no times. */
const TIME = /^(?:start|end|begin|offsets?|from|to|at|ts)(?:$|_|[A-Z])|^time|[^n]time|Time/;
const START = /^(?:start|begin|offset|from|ts|time)/i;
/** Lists within an utterance, which hold its words if it has no others, and what joins their parts. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ['sentences', ' '],
  ['textblocks', ' '],
  ['words', ' '],
  ['elements', ''],
]);
/** Lists of readings of the same words, the best of which comes first. */
export const ALTERNATIVES: ReadonlySet<string> = new Set(['alternatives', 'nbest']);
const WORD_TYPES: ReadonlySet<string> = new Set(['word', 'pronunciation', 'punctuation']);
const PUNCTUATION = /^[.,!?;:…%)\]}。，、！？；：]+$/u;

export interface Utterance {
  /** Null if no member holds words; empty if one says that there are none. */
  readonly words: string | null;
  /** Empty if nobody is named. */
  readonly speaker: string;
  /** Whether a member is about a speaker, also if it names none; `sure`: it is called so. */
  readonly speakerMember: 'sure' | 'likely' | 'none';
  readonly isTimed: boolean;
  /** Where it begins, in any unit; NaN if it does not say. */
  readonly start: number;
  /** `type`, in small letters. */
  readonly type: string;
  /** Whether it is a single word of a list of words. */
  readonly isWord: boolean;
  /** Whether no space stands before it. */
  readonly isPunctuation: boolean;
}

type Members = ReadonlyMap<string, unknown>;

/** What an element of a list says; null if it is no object. */
export function utteranceOf(element: unknown): Utterance | null {
  if (!isObject(element)) return null;
  const members = membersOf(element);
  const best = bestReading(members);
  const inner = best === null ? null : membersOf(best);
  const words = wordsOf(members) ?? (inner === null ? null : wordsOf(inner)) ?? partsOf(members);
  const speaker = speakerOf(members) ?? (inner === null ? null : speakerOf(inner));
  const type = typeof members.get('type') === 'string' ? String(members.get('type')).toLowerCase() : '';
  const isWord =
    WORD_TYPES.has(type) || (!members.has('text') && (members.has('word') || members.has('punctuatedword')));
  const isTimed = hasTime(element) || (best !== null && Object.values(best).some((value) => hasTimedParts(value)));
  const isPunctuation = type === 'punctuation' || (words !== null && PUNCTUATION.test(words));
  return {
    words: words?.toWellFormed() ?? null,
    speaker: (speaker ?? '').toWellFormed(),
    speakerMember:
      speaker === null
        ? 'none'
        : hasSureSpeaker(members) || (inner !== null && hasSureSpeaker(inner))
          ? 'sure'
          : 'likely',
    isTimed,
    start: startOf(element),
    type,
    isWord,
    isPunctuation,
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The members by their names in small letters without underscores; of two equal ones the first counts. */
function membersOf(object: Record<string, unknown>): Members {
  const members = new Map<string, unknown>();
  for (const [key, value] of Object.entries(object)) {
    const plain = plainKey(key);
    if (!members.has(plain)) members.set(plain, value);
  }
  return members;
}

/** The same few names stand in every element. */
const plainKeys = new Map<string, string>();
const MAX_PLAIN_KEYS = 2000;

export function plainKey(key: string): string {
  const known = plainKeys.get(key);
  if (known !== undefined) return known;
  const plain = key.toLowerCase().replaceAll(/[_\-\s]/g, '');
  if (plainKeys.size < MAX_PLAIN_KEYS) plainKeys.set(key, plain);
  return plain;
}

function wordsOf(members: Members): string | null {
  const present = WORDS.filter((key) => members.has(key));
  const words = present.map((key) => members.get(key)).find((value) => typeof value === 'string');
  if (typeof words === 'string') return words;
  return present.some((key) => members.get(key) === null) ? '' : null;
}

/** The words of the parts, if the utterance consists of such. */
function partsOf(members: Members): string | null {
  for (const [list, joint] of PARTS) {
    const parts = members.get(list);
    if (!Array.isArray(parts)) continue;
    const words = parts.flatMap((part: unknown) => (isObject(part) ? (wordsOf(membersOf(part)) ?? []) : []));
    if (words.length > 0) return words.join(joint);
  }
  return null;
}

function bestReading(members: Members): Record<string, unknown> | null {
  for (const list of ALTERNATIVES) {
    const readings = members.get(list);
    const first: unknown = Array.isArray(readings) ? readings[0] : null;
    if (isObject(first)) return first;
  }
  return null;
}

/** The speaker's name; empty if a member says that there is none, null if no member is about a speaker. */
function speakerOf(members: Members): string | null {
  let isKnown = false;
  for (const key of SPEAKERS) {
    if (!members.has(key)) continue;
    isKnown = true;
    const name = nameOf(members.get(key));
    if (name.trim() !== '') return name;
  }
  return isKnown ? '' : null;
}

function hasSureSpeaker(members: Members): boolean {
  return [...members.keys()].some((key) => key.startsWith('speaker') || key.startsWith('participant'));
}

function nameOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) return nameOf(value[0]);
  if (!isObject(value)) return '';
  const members = membersOf(value);
  for (const key of NAMES) {
    const name = members.get(key);
    if ((typeof name === 'string' && name.trim() !== '') || typeof name === 'number') return String(name);
  }
  return '';
}

function hasTime(object: Record<string, unknown>): boolean {
  return Object.entries(object).some(
    ([key, value]) => value !== null && TIME.test(key.charAt(0).toLowerCase() + key.slice(1)),
  );
}

function hasTimedParts(value: unknown): boolean {
  const first: unknown = Array.isArray(value) ? value[0] : null;
  return isObject(first) && hasTime(first);
}

function startOf(object: Record<string, unknown>): number {
  for (const [key, value] of Object.entries(object)) {
    if (!START.test(key)) continue;
    if (typeof value === 'number') return value;
    if (typeof value === 'string' && value.trim() !== '') return Number(value);
  }
  return NaN;
}
