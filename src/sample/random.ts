/** Seeded randomness: equal seeds give equal samples on every machine, so that a test can name what it expects. */

export const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const HEX = '0123456789abcdef';

/**
 * Draws from a sequence of its own for each list of parts: `new Random(seed, 'transcript', id)` doesn't depend on what was
 * drawn elsewhere, so a part can be made when it is asked for. Not for secrets.
 */
export class Random {
  readonly #draw: () => number;

  constructor(...parts: readonly (string | number)[]) {
    this.#draw = sfc32(hash128(parts.join('\u001f')));
  }

  /** In [0, 1). */
  next(): number {
    return this.#draw();
  }

  /** An integer, both ends included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** True with the given probability, 0 to 1. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** One of the items. Throws a RangeError if there is none. */
  pick<T>(items: readonly T[]): T {
    const item = items[this.int(0, items.length - 1)];
    if (item === undefined) throw new RangeError('there is nothing to pick from');
    return item;
  }

  /** One of the items, each as likely as its weight says. */
  weighted<T>(entries: readonly (readonly [item: T, weight: number])[]): T {
    let rest = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    const hit = entries.find(([, weight]) => (rest -= weight) < 0) ?? entries.at(-1);
    if (hit === undefined) throw new RangeError('there is nothing to pick from');
    return hit[0];
  }

  /** From the standard normal distribution (Box and Muller). */
  gaussian(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
  }

  /** As many characters of `alphabet` as `length` says. */
  text(alphabet: string, length: number): string {
    return Array.from({ length }, () => alphabet.charAt(this.int(0, alphabet.length - 1))).join('');
  }

  /** A UUID of version 4 (RFC 9562). */
  uuid(): string {
    const variant = this.pick(['8', '9', 'a', 'b']);
    const [a, b, c, d, e] = [8, 4, 3, 3, 12].map((length) => this.text(HEX, length));
    return `${a}-${b}-4${c}-${variant}${d}-${e}`;
  }
}

/** cyrb128: spreads a string over the 128 bits that the generator starts from. */
function hash128(text: string): [number, number, number, number] {
  let [h1, h2, h3, h4] = [1779033703, 3144134277, 1013904242, 2773480762];
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
function sfc32([a, b, c, counter]: [number, number, number, number]): () => number {
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
