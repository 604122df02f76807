/** The small grammar of the sample's sentences: `{slot}`, `{12-40}` for a number between, `[this|that]` for one of them. */
import type { Random } from '../random.ts';

/** What a slot stands for: one text, or several to draw from. */
export type Facts = Readonly<Record<string, string | readonly string[]>>;

const CHOICE = /\[([^[\]]+)\]/g;
const SLOT = /\{(?:(\d+)-(\d+)|(\w+))\}/g;

/**
 * Writes a template out. Alternatives may hold slots, not other alternatives.
 * Throws a RangeError for a slot that the facts don't have.
 */
export function fill(template: string, facts: Facts, random: Random): string {
  return template
    .replace(CHOICE, (_choice, items: string) => random.pick(items.split('|')))
    .replace(SLOT, (_slot, min: string | undefined, max: string | undefined, name: string | undefined) => {
      if (name === undefined) return String(random.int(Number(min), Number(max)));
      const fact = facts[name];
      if (fact === undefined) throw new RangeError(`the sample knows no fact called ${name}`);
      return typeof fact === 'string' ? fact : random.pick(fact);
    });
}
