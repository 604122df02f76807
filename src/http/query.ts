/** The pieces both surfaces read query parameters with. */

/** A value of a repeated parameter is worse than none: no one can say which was meant. */
export type Parameter =
  | { readonly kind: 'absent' }
  | { readonly kind: 'one'; readonly value: string }
  | { readonly kind: 'repeated' };

export function parameter(query: URLSearchParams, name: string): Parameter {
  const values = query.getAll(name);
  const [value] = values;
  if (value === undefined) return { kind: 'absent' };
  return values.length === 1 ? { kind: 'one', value } : { kind: 'repeated' };
}

const INTEGER = /^-?[0-9]{1,9}$/;

/** The integer that a parameter's text stands for, or null where it stands for none (Q1). */
export function integerOf(text: string): number | null {
  return INTEGER.test(text) ? Number(text) : null;
}

/** Length in Unicode code points (Q1). */
export function codePointLength(text: string): number {
  let length = 0;
  for (let index = 0; index < text.length; index++) {
    const isPair = isHighSurrogate(text.charCodeAt(index)) && isLowSurrogate(text.charCodeAt(index + 1));
    if (isPair) index++;
    length++;
  }
  return length;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
