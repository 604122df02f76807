/** Reading an endpoint's query: every parameter is known, and none is given more often than it may be. */
import type { EndpointContext } from './context.ts';
import { AdminError } from './errors.ts';

export interface QueryRules {
  /** What each parameter may hold, for messages. */
  readonly allowed: Readonly<Record<string, string>>;
  /** Those that may be repeated. */
  readonly repeatable?: readonly string[];
}

/** The values of each parameter, none or one but for the repeatable ones. Throws AdminError 400. */
export function queryOf(ctx: EndpointContext, { allowed, repeatable = [] }: QueryRules): ReadonlyMap<string, string[]> {
  const query = new URLSearchParams(`?${ctx.querystring}`);
  const known = Object.keys(allowed);
  for (const name of new Set(query.keys())) {
    if (!known.includes(name)) {
      throw badQuery(`Unknown query parameter ${shown(name)}. Known here: ${known.join(', ')}.`);
    }
    if (!repeatable.includes(name) && query.getAll(name).length > 1) {
      throw badQuery(`The query parameter ${name} may be given only once.`);
    }
  }
  return new Map(known.map((name) => [name, query.getAll(name)]));
}

/** The refusal of a parameter's value. */
export function badParameter(name: string, given: string, allowed: string): AdminError {
  return badQuery(`The query parameter ${name}: given ${shown(given)}; allowed: ${allowed}.`);
}

export function badQuery(message: string): AdminError {
  return new AdminError(400, message, { privateMessage: 'faulty query' });
}

const LONGEST_SHOWN = 100;

/** As text in quotes, never longer than a line. */
export function shown(text: string): string {
  return JSON.stringify(text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}...` : text);
}
