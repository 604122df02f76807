/** Kinds of settings that hold bearer tokens. */
import { type Kind, textSchema, ValueProblem } from './kinds.ts';

export interface NamedToken {
  /** Who uses it; goes into the audit. */
  readonly name: string;
  readonly token: string;
}

/** The name of an admin token that was given without one. */
const UNNAMED = 'admin';
/** A token is chosen by an operator: any visible ASCII but the comma, which stands between pairs. */
const TOKEN = /^[\x21-\x2b\x2d-\x7e]{1,512}$/;
/** The token of a pair does not consist of `=` alone: those end a Base64 text that was given as one token. */
const NAMED_TOKEN = /^([A-Za-z0-9][A-Za-z0-9_.@-]{0,63})=(=*[^=].*)$/;

/** The token sent to the store: anything that a header can carry in one word. */
export function upstreamToken(): Kind<string> {
  return {
    schema: textSchema((text) => (/^[\x21-\x7e]{1,4096}$/.test(text) ? text : null)),
    allowed: '1 to 4096 visible ASCII characters without spaces',
  };
}

export function adminTokens(): Kind<NamedToken[]> {
  return {
    schema: textSchema(parseAdminTokens),
    allowed:
      'one token, or name=token pairs with commas between them; a token is 1 to 512 visible ASCII characters without spaces and commas',
  };
}

/** Reads `ADMIN_TOKEN`. Messages never quote it: a name cannot be told from a part of a token that was mistyped. */
export function parseAdminTokens(text: string): NamedToken[] | null {
  if (TOKEN.test(text) && !NAMED_TOKEN.test(text)) return [{ name: UNNAMED, token: text }];
  const tokens: NamedToken[] = [];
  for (const [index, pair] of text.split(',').entries()) {
    const [, name, token = ''] = NAMED_TOKEN.exec(pair.trim()) ?? [];
    if (name === undefined || !TOKEN.test(token)) {
      throw new ValueProblem(`part ${index + 1} (between commas) is not a name=token pair`);
    }
    if (tokens.some((other) => other.name === name))
      throw new ValueProblem(`the name of part ${index + 1} is given twice`);
    if (tokens.some((other) => other.token === token))
      throw new ValueProblem(`the token of part ${index + 1} is given twice`);
    tokens.push({ name, token });
  }
  return tokens;
}
