/**
 * Names of speakers: what may be one (T3: what may be a name), what looks like one, and words that are keys of headers and
 * records instead.
 */
import { isBlank, isWhiteSpace } from './lines.ts';

const MAX_NAME_POINTS = 60;
/** A longer stretch of text is not looked through for the end of a name. */
export const MAX_NAME_UNITS = 2 * MAX_NAME_POINTS;
const MAX_NAME_WORDS = 8;
const MAX_BEGINNINGS = 4096;
const begins = new Map<number, boolean>();
const NAME_BEGINS = /^[\p{L}\p{Nd}+([@_"]/u;
const COMMA = 0x2c;
const QUOTE = 0x22;
const PARENTHESIS_OPEN = 0x28;
const PARENTHESIS_CLOSE = 0x29;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
/** Signs of a sentence, not of a name: `!`, `?`, `;`, and those of Chinese and Japanese. */
const SENTENCE_MARKS: ReadonlySet<number> = new Set(Array.from('!?;，。、！？；', (mark) => mark.charCodeAt(0)));

/**
 * Whether what stands between the two positions can be a speaker's name (T3): 1 to 60 code points, at most 8 words outside
 * parentheses, beginning with a letter, a digit or one of `+ ( [ @ _ "`, without `!`, `?` and `;`. Nor is it a cell of a
 * table, a box to tick, or the end or the beginning of something quoted.
 */
export function isName(text: string, start: number, end: number): boolean {
  if (start >= end || end - start > MAX_NAME_UNITS) return false;
  if (!beginsName(text, start) || (text[start] === '[' && text[start + 2] === ']')) return false;
  let [points, words, depth, quotes, brackets] = [0, 0, 0, 0, 0];
  let inWord = false;
  for (let i = start; i < end; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 0xdc00 || unit > 0xdfff) points += 1;
    if (unit === PARENTHESIS_OPEN) depth += 1;
    const isSpace = isWhiteSpace(unit);
    if (!isSpace && !inWord && depth === 0) words += 1;
    inWord = !isSpace;
    if (unit > 0x7d && unit < 0x3000) continue;
    if (SENTENCE_MARKS.has(unit) || CODE_MARKS.has(unit)) return false;
    if (unit === COMMA && i + 1 < end && !isWhiteSpace(text.charCodeAt(i + 1))) return false;
    if (unit === QUOTE) quotes += 1;
    if (unit === BRACKET_OPEN) brackets += 1;
    if (unit === BRACKET_CLOSE) brackets -= 1;
    if (unit === PARENTHESIS_CLOSE && depth > 0) depth -= 1;
  }
  if (depth > 0 || points > MAX_NAME_POINTS || words > MAX_NAME_WORDS || quotes % 2 > 0 || brackets !== 0) return false;
  return !isBlank(text, start, end);
}

/** Whether a name may begin with the character at the position. */
export function beginsName(text: string, start: number): boolean {
  const unit = text.charCodeAt(start);
  if (unit < 0x80) return isAsciiNameStart(unit);
  const known = begins.get(unit);
  if (known !== undefined) return known;
  const isBeginning = NAME_BEGINS.test(String.fromCodePoint(text.codePointAt(start) ?? 0));
  // The same few letters begin most lines. A surrogate is half a character.
  if (begins.size < MAX_BEGINNINGS && (unit < 0xd800 || unit > 0xdfff)) begins.set(unit, isBeginning);
  return isBeginning;
}

function isAsciiNameStart(unit: number): boolean {
  const lower = unit | 0x20;
  return (
    (lower >= 0x61 && lower <= 0x7a) || (unit >= 0x30 && unit <= 0x39) || '+([@_"'.includes(String.fromCharCode(unit))
  );
}

export function isSentenceMark(unit: number): boolean {
  return SENTENCE_MARKS.has(unit);
}

/** Signs of a program's text. */
const CODE_MARKS: ReadonlySet<number> = new Set(Array.from('{}=`>', (mark) => mark.charCodeAt(0)));

const MAX_LIKELY_WORDS = 8;
/** Chinese and Japanese write no spaces. */
const LONG_PHRASE = /[\p{Script=Han}\p{Script=Hiragana}]{11}/u;
const COUNTER = /^\d{1,4}$/;
const IN_PARENTHESES = /\([^()]{0,60}\)|\[[^[\]]{0,60}\]/g;
const SMALL = /^\p{Ll}/u;
/** Small words within names. */
const PARTICLES: ReadonlySet<string> = new Set(
  'de|del|della|di|da|do|dos|du|la|le|el|al|van|von|der|den|zu|y|e|i|of|and|und|et|bin|ibn|ben|ap'.split('|'),
);
/** Those with which a family name may begin. */
const FIRST_PARTICLES: ReadonlySet<string> = new Set('de|del|della|di|da|dos|du|van|von|el|al|bin|ibn|ben'.split('|'));
/** Words of titles, not of names. */
const TITLE_WORDS: ReadonlySet<string> = new Set(
  'the|what|how|why|when|where|is|are|to|in|on|at|with|for|our|your|from|about'.split('|'),
);
const ENDS_SENTENCE = /[.,…:]$/;
const INITIAL = /(?:\b\p{Lu}|Jr|Sr|Dr|Esq)\.$/u;

/**
 * Whether a name looks like one: a few words with capitals (in scripts that have them), no phrase. `the thing is` may stand
 * before a colon too, and `The State of Things` above a chapter.
 */
export function looksLikeName(name: string): boolean {
  const words = name
    .replaceAll(IN_PARENTHESES, ' ')
    .split(/[\s_]+/u)
    .filter((word) => word !== '');
  if (COUNTER.test(name) || LONG_PHRASE.test(name)) return false;
  if (
    words.filter((word) => !PARTICLES.has(word)).length > MAX_LIKELY_WORDS ||
    (ENDS_SENTENCE.test(name) && !INITIAL.test(name))
  )
    return false;
  if (words.length <= 1) return !TITLE_WORDS.has(name.toLowerCase());
  return words.every((word, i) => {
    const lower = word.toLowerCase();
    if (TITLE_WORDS.has(lower)) return i === 0 && lower === 'the' && word === 'The' && words.length === 2;
    return (
      !SMALL.test(word) || (PARTICLES.has(lower) && (i > 0 || FIRST_PARTICLES.has(lower))) || word.startsWith("d'")
    );
  });
}

/** Keys of mails, notes and headers (T11, T12: a key is no speaker). */
const KEYS: ReadonlySet<string> = new Set(
  `from|to|cc|bcc|subject|date|sent|reply-to|message-id|mime-version|content-type|re|fwd|fw
von|betreff|datum|gesendet|objet|envoyé|asunto|para|fecha|enviado
title|meeting|topic|agenda|attendees|participants|present|absent|location|place|where|when
time|start|end|start time|end time|duration|length|language|kind|description|keywords|tags
recorded|recording|recorded on|recorded by|transcript|transcription|transcribed by|source
url|link|file|filename|id|call id|meeting id|passcode
note|notes|nb|n.b.|ps|p.s.|todo|to do|summary|action items|next steps|outcome
fix|fixes|fixed|feat|features|docs|doc|documentation|bugfix|bug fix|bug fixes|added|changed|removed|deprecated
build|ci|chore|author|commit|committer|merge|refactor|refactoring|style|perf|performance|test|tests|deps|dev deps|breaking|breaking change|breaking changes
example|examples|params|parameters|returns|usage|default|warning|important|tip|see|see also|version|license|meta|actions
monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tue|wed|thu|fri|sat|sun
info|warn|error|debug|trace|fatal|critical|notice|verbose|npm warn
email|phone|mobile|address|website|account|company|status|priority|ticket|item|total|currency|budget|pain|next step
correct|decision|action|strength|strengths|weakness|weaknesses|pros|cons|overall|feedback
rapport|discovery|objection|objections|opening|closing|economic buyer|decision criteria|decision process|decision maker|identify pain
subjective|objective|assessment|diagnosis|ingredients|directions|serves|prep time|cook time|photo|photos|credits
verse|chorus|step|part|chapter|section|appendix|feature|scenario|user-agent|disallow
titel|thema|teilnehmer|ort|zeit|dauer|sprache|notiz|hinweis|titre|durée|título`.split(/[|\n]/),
);
/** The last word of a key of several: `Call Date`, `Meeting ID`. */
const KEY_ENDS: ReadonlySet<string> = new Set(
  'date|time|type|id|title|name|duration|number|link|url|stage|size|status|participants|attendees|by|on|version'.split(
    '|',
  ),
);

/** `BY MR. SMITH:` in court: those who examine the witness from here on. */
const EXAMINER = /^BY \p{Lu}/u;

const KEY_TAIL = /(?: \d{1,4}|\([^()]{0,40}\))$/;

export function isKey(name: string): boolean {
  // `Question 2` and `feat(core)` are keys as well.
  const lower = name.toLowerCase().replace(KEY_TAIL, '');
  if (EXAMINER.test(name)) return true;
  return KEYS.has(lower) || (lower.includes(' ') && KEY_ENDS.has(lower.slice(lower.lastIndexOf(' ') + 1)));
}

/** Whether a line's words are an address of the web, which nobody says. */
export function isAddress(words: string): boolean {
  return ADDRESS.test(words);
}

const ADDRESS = /^\s?<?(?:https?:\/\/|www\.)\S{1,400}$/i;

const SOUND =
  /^(?:music|applause|laughter|laughing|laughs|chuckles|inaudible|unintelligible|crosstalk|silence|noise|pause|foreign|cheering|cheers and applause|coughs|background noise|no audio|end|musik|musique)$/i;

const TAG = /^\/?(?:[abipqsu]|em|strong|br|div|span|li|[ou]l|h[1-6]|t[dhr]|table|script|style)(?:\s|\/?$)/;

/** `[Music]` and `<b>`: what is heard and how it is shown, not who speaks. */
export function isSoundOrTag(words: string): boolean {
  return SOUND.test(words) || TAG.test(words);
}

/** Where the name of a sender ends, before those to whom he writes (`Ann to Everyone`). */
export function senderEnd(text: string, start: number, end: number): number {
  const to = text.slice(start, end).search(ADDRESSEE);
  return to < 1 ? end : start + to;
}

const ADDRESSEE = / {1,3}to {1,3}\S/i;

/** Labels of records that have the speaker as their value: `Speaker: Ann`, and below it `Text: Hello.` */
const SPEAKER_LABELS: ReadonlySet<string> = new Set(
  'speaker|name|participant|role|user|who|speaker name|speaker id|sprecher'.split('|'),
);

export function isSpeakerLabel(name: string): boolean {
  return SPEAKER_LABELS.has(name.toLowerCase());
}

/** In hearings and courts a period ends the name: `Q.`, `Mr. SMITH.`, `Senator Smith.`, `The CHAIRMAN.` */
const WITNESS =
  /^(?:[QA]|(?:Mr|Mrs|Ms|Dr|Hon|Gen|Adm|Lt|Col|Sen|Rep)\. \S.{0,40}|The (?:chair|court|clerk|witness|speaker|president|acting)\p{L}*(?: \p{L}{1,20})?|(?:chair|senator|congress|representative|judge|justice|secretary|director|general|ranking|delegate|commissioner|admiral|ambassador|attorney|governor|mayor)\p{L}* \S.{0,40})$/iu;
const MAX_WITNESS_WORDS = 6;

export function looksLikeWitness(name: string): boolean {
  if (!WITNESS.test(name) || SMALL.test(name)) return false;
  const words = name.split(' ');
  return (
    words.length <= MAX_WITNESS_WORDS && words.every((word, i) => i === 0 || !SMALL.test(word) || PARTICLES.has(word))
  );
}

/** A name that stands in a body, and what was found out about it, once. */
export class Name {
  readonly text: string;
  /** How often it has occurred. */
  count = 0;
  #isKey: boolean | null = null;
  #isLikely: boolean | null = null;
  #isWitness: boolean | null = null;
  #prefix: string | null = null;

  /** Whether its occurrences are counted. */
  readonly isCounted: boolean;

  constructor(text: string, isCounted: boolean) {
    this.text = text;
    this.isCounted = isCounted;
  }

  get isKey(): boolean {
    return (this.#isKey ??= isKey(this.text));
  }

  get isLikely(): boolean {
    return (this.#isLikely ??= this.isCounted && looksLikeName(this.text));
  }

  get isWitness(): boolean {
    return (this.#isWitness ??= looksLikeWitness(this.text));
  }

  /** How it stands before words. */
  get prefix(): string {
    return (this.#prefix ??= `${this.text}: `);
  }
}

/**
 * The names of a body and how often each occurs. It remembers so many, more than any call has: in a body with more, the
 * others are no evidence, and look like no names.
 */
export class Names {
  static readonly #MAX_NAMES = 4096;
  readonly #names = new Map<string, Name>();
  /** How many names have occurred. */
  size = 0;
  /** Occurrences of names that had occurred before. */
  repeats = 0;
  /** How many names have occurred once. */
  once = 0;
  /** The most that any name has occurred. */
  most = 0;

  /** The name of this text, which may not have occurred yet. */
  of(text: string): Name {
    let name = this.#names.get(text);
    if (name !== undefined) return name;
    if (this.isFull) return new Name(text, false);
    name = new Name(text, true);
    this.#names.set(text, name);
    return name;
  }

  /** Whether no further name will be remembered. */
  get isFull(): boolean {
    return this.#names.size >= Names.#MAX_NAMES;
  }

  /** Counts an occurrence of the name. */
  add(text: string): Name {
    const name = this.of(text);
    if (!name.isCounted) return name;
    name.count += 1;
    if (name.count === 1) {
      this.size += 1;
      this.once += 1;
    } else {
      this.repeats += 1;
      if (name.count === 2) this.once -= 1;
    }
    if (name.count > this.most) this.most = name.count;
    return name;
  }

  /** How often the text has occurred as a name. It is not remembered. */
  countOf(text: string): number {
    return this.#names.get(text)?.count ?? 0;
  }

  /** The texts of all names that have occurred. */
  all(): string[] {
    return [...this.#names.values()].filter(({ count }) => count > 0).map(({ text }) => text);
  }
}
