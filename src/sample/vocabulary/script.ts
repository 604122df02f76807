/** Dialogue as it is written down: a line a turn, a blank line between one exchange and the next. */

/** The lines of an exchange. Each begins with who says it: `S` the seller, `B` the buyer, `C` a colleague of the buyer. */
export type Exchange = readonly string[];

/** Reads exchanges from a script. */
export function parseScript(script: string): readonly Exchange[] {
  return script
    .trim()
    .split('\n\n')
    .map((exchange) => exchange.split('\n'));
}
