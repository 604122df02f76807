/** One utterance, or one word, of a JSON transcript: which of its members are the words, the speaker and the time. */

/** Members in order of preference, in small letters without underscores. */
const WORDS = ranked(
  'text|transcript|body|content|spokentext|sentence|utterance|display|message|caption|punctuatedword|word|value',
);
const SPEAKERS = ranked(
  'speakername|speakerdisplayname|personname|speaker|participantname|participant|user|username|users|name|displayname|participantrole|role|speakerid|speakerlabel|speakertag|participanttype|participantid|userid',
);
/** Members of a speaker that is an object. */
const NAMES = ranked('name|displayname|username|speakerlabel|label|speaker|id|email');
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
const FOREIGN: ReadonlySet<string> = new Set('level|severity|logger|hostname|price|sku|rating|stars'.split('|'));
/** Lists of readings of the same words, the best of which comes first. */
export const ALTERNATIVES: ReadonlySet<string> = new Set(['alternatives', 'nbest']);
const WORD_TYPES: ReadonlySet<string> = new Set(['word', 'pronunciation', 'punctuation']);
const WORD_MEMBERS: ReadonlySet<string> = new Set(['word', 'punctuatedword']);
const PUNCTUATION = /^[.,!?;:…%)\]}。，、！？；：]+$/u;

export interface Utterance {
  /** Null if no member holds words; empty if one says that there are none. */
  readonly words: string | null;
  /** Empty if nobody is named. */
  readonly speaker: string;
  /** Whether a member is about a speaker, also if it names none; `sure`: it is called so. */
  readonly speakerMember: 'sure' | 'likely' | 'none';
  readonly isTimed: boolean;
  /** Whether it has a member of things that are no utterances, and none that is surely about a speaker. */
  readonly isForeign: boolean;
  /** Where it begins, in any unit; NaN if it does not say. */
  readonly start: number;
  /** `type`, in small letters. */
  readonly type: string;
  /** Whether it is a single word of a list of words. */
  readonly isWord: boolean;
  /** Whether no space stands before it. */
  readonly isPunctuation: boolean;
}

function ranked(names: string): ReadonlyMap<string, number> {
  return new Map(names.split('|').map((name, rank) => [name, rank]));
}

/** The meaning of a member's name. Ranks are places in the lists above; -1 if it is in none. */
interface Meaning {
  readonly plain: string;
  readonly wordsRank: number;
  readonly speakerRank: number;
  readonly nameRank: number;
  readonly isSureSpeaker: boolean;
  readonly isTime: boolean;
  readonly isStart: boolean;
  /** Whether it says anything. */
  readonly isKnown: boolean;
  /** Whether things have it that are no utterances: logs, products, reviews. */
  readonly isForeign: boolean;
}

/** The same few names stand in every element. */
const meanings = new Map<string, Meaning>();
const MAX_MEANINGS = 2000;

export function meaningOf(key: string): Meaning {
  const remembered = meanings.get(key);
  if (remembered !== undefined) return remembered;
  const plain = key.toLowerCase().replaceAll(/[_\-\s]/g, '');
  const [wordsRank, speakerRank, nameRank] = [
    WORDS.get(plain) ?? -1,
    SPEAKERS.get(plain) ?? -1,
    NAMES.get(plain) ?? -1,
  ];
  const isSureSpeaker = plain.startsWith('speaker') || plain.startsWith('participant');
  const isTime = TIME.test(key.charAt(0).toLowerCase() + key.slice(1));
  const isStart = START.test(key);
  const isPart = plain === 'type' || PARTS.has(plain) || ALTERNATIVES.has(plain);
  const isForeign = FOREIGN.has(plain);
  const isKnown = isForeign || wordsRank !== -1 || speakerRank !== -1 || isSureSpeaker || isTime || isStart || isPart;
  const meaning = { plain, wordsRank, speakerRank, nameRank, isSureSpeaker, isTime, isStart, isKnown, isForeign };
  if (meanings.size >= MAX_MEANINGS) meanings.clear();
  meanings.set(key, meaning);
  return meaning;
}

/** A member's name in small letters without underscores. */
export function plainKey(key: string): string {
  return meaningOf(key).plain;
}

/** The contents of one object's members. */
export class Members {
  words: string | null = null;
  speaker: string | null = null;
  isSureSpeaker = false;
  isTimed = false;
  isForeign = false;
  start = NaN;
  type = '';
  /** The words of its parts, if it has some. */
  parts: string | null = null;
  /** The best of several readings. */
  reading: Record<string, unknown> | null = null;
  #wordsRank = Infinity;
  #speakerRank = Infinity;
  #hasText = false;
  #hasWord = false;

  static of(object: Record<string, unknown>): Members {
    const members = new Members();
    for (const key of Object.keys(object)) members.add(meaningOf(key), object[key]);
    return members;
  }

  /** Whether the object is a single word of a list of words. */
  get isWord(): boolean {
    return WORD_TYPES.has(this.type) || (this.#hasWord && !this.#hasText);
  }

  add(meaning: Meaning, value: unknown): void {
    const { plain, wordsRank, speakerRank } = meaning;
    if (wordsRank !== -1) this.#addWords(plain, wordsRank, value);
    if (speakerRank !== -1) this.#addSpeaker(speakerRank, nameOf(value));
    if (meaning.isSureSpeaker) this.isSureSpeaker = true;
    if (meaning.isForeign) this.isForeign = true;
    if (meaning.isTime && value !== null) this.isTimed = true;
    if (meaning.isStart && Number.isNaN(this.start)) this.start = numberOf(value);
    if (plain === 'type' && typeof value === 'string') this.type = value.toLowerCase();
    if (!Array.isArray(value)) return;
    const joint = PARTS.get(plain);
    if (joint !== undefined) this.parts ??= joinedWords(value, joint);
    const first: unknown = value[0];
    if (ALTERNATIVES.has(plain) && isObject(first)) this.reading ??= first;
  }

  #addWords(plain: string, rank: number, value: unknown): void {
    if (plain === 'text') this.#hasText = true;
    if (WORD_MEMBERS.has(plain)) this.#hasWord = true;
    if (value === null) this.words ??= '';
    if (typeof value !== 'string' || rank >= this.#wordsRank) return;
    this.words = value;
    this.#wordsRank = rank;
  }

  #addSpeaker(rank: number, name: string): void {
    this.speaker ??= '';
    if (name.trim() === '' || rank >= this.#speakerRank) return;
    this.speaker = name;
    this.#speakerRank = rank;
  }
}

/** The utterance in an element of a list. */
export function utteranceOf(members: Members): Utterance {
  const reading = members.reading === null ? null : Members.of(members.reading);
  const words = members.words ?? reading?.words ?? reading?.parts ?? members.parts;
  const speaker = members.speaker ?? reading?.speaker ?? null;
  const isSure = members.isSureSpeaker || reading?.isSureSpeaker === true;
  const isTimed = members.isTimed || (members.reading !== null && Object.values(members.reading).some(hasTimedParts));
  return {
    words: words?.toWellFormed() ?? null,
    speaker: (speaker ?? '').toWellFormed(),
    speakerMember: speaker === null ? 'none' : isSure ? 'sure' : 'likely',
    isTimed,
    isForeign: members.isForeign && !isSure,
    start: members.start,
    type: members.type,
    isWord: members.isWord,
    isPunctuation: members.type === 'punctuation' || (words !== null && PUNCTUATION.test(words)),
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Null if the parts hold no words. */
function joinedWords(parts: readonly unknown[], joint: string): string | null {
  const words = parts.flatMap((part) => (isObject(part) ? (Members.of(part).words ?? []) : []));
  return words.length > 0 ? words.join(joint) : null;
}

/** The name of a speaker that is a text, a number, an object with a name, or a list of such; empty if it has none. */
function nameOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) return nameOf(value[0]);
  if (!isObject(value)) return '';
  let [best, bestRank] = ['', Infinity];
  for (const key of Object.keys(value)) {
    const { nameRank } = meaningOf(key);
    const member = value[key];
    if (nameRank === -1 || nameRank >= bestRank || (typeof member !== 'string' && typeof member !== 'number')) continue;
    if (String(member).trim() !== '') [best, bestRank] = [String(member), nameRank];
  }
  return best;
}

function hasTimedParts(value: unknown): boolean {
  const first: unknown = Array.isArray(value) ? value[0] : null;
  return isObject(first) && Members.of(first).isTimed;
}

function numberOf(value: unknown): number {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && value.trim() !== '' ? Number(value) : NaN;
}
