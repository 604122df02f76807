/** Seeded randomness: equal seeds give equal samples on every machine, so that a test can name what it expects. */

/** Draws from one seeded sequence. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  /** An integer, both ends included. */
  int(min: number, max: number): number;
  /** True with the given probability, 0 to 1. */
  chance(probability: number): boolean;
  /** One of the items. Throws a RangeError where there is none. */
  pick<T>(items: readonly T[]): T;
  /** One of the items, each as likely as its weight says. */
  weighted<T>(entries: readonly (readonly [item: T, weight: number])[]): T;
  /** The items in a new order. */
  shuffled<T>(items: readonly T[]): T[];
  /** From the standard normal distribution (Box and Muller). */
  gaussian(): number;
  /** So many characters of `alphabet`. */
  text(alphabet: string, length: number): string;
}

export const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const HEX = '0123456789abcdef';

/**
 * A sequence of its own for each list of parts: `createRandom(seed, 'transcript', id)` doesn't depend on what was drawn
 * elsewhere, so a part can be made when it is asked for. Not for secrets.
 */
export function createRandom(...parts: readonly (string | number)[]): Random {
  const next = sfc32(hash128(parts.join('\u001f')));
  const int = (min: number, max: number): number => min + Math.floor(next() * (max - min + 1));
  const pick = <T>(items: readonly T[]): T => {
    const item = items[int(0, items.length - 1)];
    if (item === undefined) throw new RangeError('there is nothing to pick from');
    return item;
  };
  return {
    next,
    int,
    pick,
    chance: (probability) => next() < probability,
    weighted: (entries) => {
      let rest = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      const hit = entries.find(([, weight]) => (rest -= weight) < 0) ?? entries.at(-1);
      if (hit === undefined) throw new RangeError('there is nothing to pick from');
      return hit[0];
    },
    shuffled: (items) =>
      items
        .map((item) => ({ item, rank: next() }))
        .toSorted((a, b) => a.rank - b.rank)
        .map(({ item }) => item),
    gaussian: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
    text: (alphabet, length) => {
      let text = '';
      while (text.length < length) text += alphabet.charAt(int(0, alphabet.length - 1));
      return text;
    },
  };
}

/** A UUID of version 4 (RFC 9562) from the sequence. */
export function randomUuid(random: Random): string {
  const variant = random.pick(['8', '9', 'a', 'b']);
  return [
    random.text(HEX, 8),
    random.text(HEX, 4),
    `4${random.text(HEX, 3)}`,
    `${variant}${random.text(HEX, 3)}`,
    random.text(HEX, 12),
  ].join('-');
}

type State128 = readonly [number, number, number, number];

/** cyrb128: spreads a string over the 128 bits that the generator starts from. */
function hash128(text: string): State128 {
  let h1 = 1779033703;
  let h2 = 3144134277;
  let h3 = 1013904242;
  let h4 = 2773480762;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    h1 = h2 ^ Math.imul(h1 ^ unit, 597399067);
    h2 = h3 ^ Math.imul(h2 ^ unit, 2869860233);
    h3 = h4 ^ Math.imul(h3 ^ unit, 951274213);
    h4 = h1 ^ Math.imul(h4 ^ unit, 2716044179);
  }
  h1 = Math.imul(h3 ^ (h1 >>> 18), 597399067);
  h2 = Math.imul(h4 ^ (h2 >>> 22), 2869860233);
  h3 = Math.imul(h1 ^ (h3 >>> 17), 951274213);
  h4 = Math.imul(h2 ^ (h4 >>> 19), 2716044179);
  return [h1 ^ h2 ^ h3 ^ h4, h2 ^ h1, h3 ^ h1, h4 ^ h1];
}

/** sfc32 of the PractRand suite: 128 bits of state, integer arithmetic only, so the same on every machine. */
function sfc32(state: State128): () => number {
  let [a, b, c, counter] = state;
  const next = (): number => {
    const result = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + result) | 0;
    return (result >>> 0) / 4_294_967_296;
  };
  // The first draws still resemble the seed.
  for (let i = 0; i < 12; i += 1) next();
  return next;
}
