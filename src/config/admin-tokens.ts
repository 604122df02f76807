/** `ADMIN_TOKEN`: the tokens of the admin listener, each with the name of its holder and what it may do. */
import { z } from 'zod';
import { OPERATOR_NAME_SOURCE } from '../domain/vocabulary.ts';
import { codec, parsed, readEach, ValueProblem } from './codecs.ts';

/**
 * `viewer` reads everything but secrets and key hashes; `operator` also purges, erases, sets times and maintenance; `keys`
 * reads and changes API keys only; `changes` announces changes of the store and does nothing else; `admin` does everything.
 */
export const ROLES = ['viewer', 'operator', 'keys', 'changes', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export interface NamedToken {
  /** The user of the token; goes into the audit. */
  readonly name: string;
  readonly role: Role;
  readonly token: string;
}

/** The name of an admin token that was given without one. */
const UNNAMED = 'admin';
/** Names who calls if no token does; a caller's own word, and so heeded only then. */
export const OPERATOR_HEADER = 'X-Evalgate-Operator';
const DEFAULT_ROLE = 'admin';
/** A token is chosen by an operator: any visible ASCII but the comma, which stands between pairs. */
const TOKEN = /^[\x21-\x2b\x2d-\x7e]{1,512}$/;
/** The token of a pair is never only `=`: those end a Base64 text that was given as one token. */
const NAMED_TOKEN = new RegExp(`^(?<name>${OPERATOR_NAME_SOURCE})(?::(?<role>[^=]*))?=(?<token>=*[^=].*)$`);

/** Whether no token tells its holder from others: there is none, or one that has no name. */
export function areAnonymous(tokens: readonly NamedToken[]): boolean {
  return tokens.every(({ name }) => name === UNNAMED);
}

export const adminTokens = codec<readonly NamedToken[]>(
  parsed(z.string(), parseAdminTokens).readonly(),
  `one token, or name=token or name:role=token pairs with commas between them; a role is one of ${ROLES.join(', ')} (the default); a token is 1 to 512 visible ASCII characters without spaces and commas`,
);

/**
 * Reads `ADMIN_TOKEN`. Throws a ValueProblem, which never quotes it: a name cannot be distinguished from a part of a token that
 * was mistyped.
 */
export function parseAdminTokens(written: string): NamedToken[] {
  if (TOKEN.test(written) && !NAMED_TOKEN.test(written)) {
    return [{ name: UNNAMED, role: DEFAULT_ROLE, token: written }];
  }
  const tokens: NamedToken[] = [];
  return readEach(written.split(','), (pair, index) => {
    const part = `part ${index + 1}`;
    const { name, role: given = DEFAULT_ROLE, token = '' } = NAMED_TOKEN.exec(pair.trim())?.groups ?? {};
    if (name === undefined || !TOKEN.test(token)) {
      throw new ValueProblem(`${part} (between commas) is not a name=token pair`);
    }
    const role = ROLES.find((known) => known === given);
    if (role === undefined) {
      throw new ValueProblem(
        `${part} has no known role between its ":" and "="; if they belong to a token, write a name before it: name=token`,
      );
    }
    if (tokens.some((other) => other.name === name)) throw new ValueProblem(`the name of ${part} is given twice`);
    if (tokens.some((other) => other.token === token)) throw new ValueProblem(`the token of ${part} is given twice`);
    const named = { name, role, token };
    tokens.push(named);
    return named;
  });
}
