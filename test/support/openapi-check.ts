/**
 * Holds a response against the OpenAPI document: is its path, status, each header and the body what the document says?
 * A header that the document knows, but not for this response, is a fault as well.
 */
import { z } from 'zod';
import { DocumentSchemas, memberOf, type Place } from './openapi-schemas.ts';

export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The decoded text of the body; empty if there is none. */
  readonly body: string;
}

export interface ResponseChecker {
  /** Everything in which a response departs from the document. */
  faults(exchange: Exchange): readonly string[];
  check(exchange: Exchange): void;
}

const documentSchema = z.record(z.string(), z.unknown());

/** The statuses for methods other than GET and HEAD. */
const OTHER_METHOD_STATUSES = [405, 429, 500];

/** By the text of their documents: to compile one costs more than to start a gateway. */
const checkers = new Map<string, ResponseChecker>();

export function checkerOf(documentText: string): ResponseChecker {
  const checker = checkers.get(documentText) ?? createResponseChecker(documentSchema.parse(JSON.parse(documentText)));
  checkers.set(documentText, checker);
  return checker;
}

export function createResponseChecker(document: object): ResponseChecker {
  const schemas = new DocumentSchemas(document);
  const knownHeaders = new Set(documentedHeaders(schemas));
  const faults = (exchange: Exchange): readonly string[] => {
    const operation = operationOf(schemas, exchange);
    if (typeof operation === 'string') return [operation];
    const response = schemas.at([...operation, 'responses', String(exchange.status)]);
    if (response.value === undefined) return [`the status ${exchange.status} is not documented`];
    return [
      ...methodFaults(exchange),
      ...headerFaults(schemas, response.place, new Headers(pairsOf(exchange.headers)), knownHeaders),
      ...bodyFaults(schemas, response.place, exchange),
    ];
  };
  return {
    faults,
    check(exchange) {
      const found = faults(exchange);
      if (found.length === 0) return;
      const title = `${exchange.method} ${exchange.path} -> ${exchange.status} is not as documented`;
      throw new Error([`${title}:`, ...found.map((fault) => `- ${fault}`)].join('\n'));
    },
  };
}

/** The place of the operation that answers an exchange, or why there is none. */
function operationOf(schemas: DocumentSchemas, exchange: Exchange): Place | string {
  const [path = ''] = exchange.path.split('?');
  const templates = schemas.keysAt(['paths']).filter((template) => matches(template, path));
  const [template] = templates;
  if (template === undefined) return `the path ${path} is not documented`;
  if (templates.length > 1) return `the path ${path} is documented more than once: ${templates.join(', ')}`;
  const own = ['paths', template, exchange.method.toLowerCase()];
  return schemas.at(own).value === undefined ? ['paths', template, 'get'] : own;
}

function matches(template: string, path: string): boolean {
  const steps = path.split('/');
  const templateSteps = template.split('/');
  return (
    steps.length === templateSteps.length &&
    templateSteps.every((step, index) => (/^\{.+\}$/.test(step) ? steps[index] !== '' : step === steps[index]))
  );
}

function methodFaults({ method, status }: Exchange): string[] {
  const isRead = method === 'GET' || method === 'HEAD';
  const isAllowed = isRead ? status !== 405 : OTHER_METHOD_STATUSES.includes(status);
  return isAllowed ? [] : [`the status ${status} is no answer to ${method}`];
}

function headerFaults(
  schemas: DocumentSchemas,
  response: Place,
  headers: Headers,
  knownHeaders: ReadonlySet<string>,
): string[] {
  const documented = schemas.keysAt([...response, 'headers']);
  const expected = documented.flatMap((name) => {
    const header = schemas.at([...response, 'headers', name]);
    const value = headers.get(name);
    if (value === null) return memberOf(header.value, 'required') === true ? [`the header ${name} is missing`] : [];
    const schemaPlace = [...header.place, 'schema'];
    const isInteger = memberOf(schemas.at(schemaPlace).value, 'type') === 'integer';
    const parsed = isInteger && /^-?[0-9]+$/.test(value) ? Number(value) : value;
    return schemas
      .checkAt(schemaPlace)(parsed)
      .map((fault) => `the header ${name}: ${value}: ${fault}`);
  });
  const allowed = new Set(documented.map((name) => name.toLowerCase()));
  const foreign = [...headers.keys()].filter((name) => knownHeaders.has(name) && !allowed.has(name));
  return [...expected, ...foreign.map((name) => `the header ${name} is not documented for this response`)];
}

function bodyFaults(schemas: DocumentSchemas, response: Place, exchange: Exchange): string[] {
  const mediaTypes = schemas.keysAt([...response, 'content']);
  const contentType = new Headers(pairsOf(exchange.headers)).get('content-type');
  const mediaType = contentType?.split(';')[0]?.trim().toLowerCase() ?? null;
  const isBodyless = exchange.method === 'HEAD' || mediaTypes.length === 0;
  if (isBodyless && exchange.body !== '') return ['there is a body where none may be'];
  if (mediaTypes.length === 0) return mediaType === null ? [] : [`the content type ${mediaType} without a body`];
  if (mediaType === null) return ['the header content-type is missing'];
  if (!mediaTypes.includes(mediaType)) return [`the content type ${mediaType} is not documented`];
  if (isBodyless) return [];
  const body = jsonOf(exchange.body);
  if (body === undefined) return ['the body is not JSON'];
  return schemas
    .checkAt([...response, 'content', mediaType, 'schema'])(body)
    .map((fault) => `the body: ${fault}`);
}

/** The parsed text; undefined, which JSON cannot say, if it is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Every header that some response documents, in lower case. */
function documentedHeaders(schemas: DocumentSchemas): string[] {
  return schemas.keysAt(['paths']).flatMap((path) =>
    schemas.keysAt(['paths', path]).flatMap((method) => {
      const responses = ['paths', path, method, 'responses'];
      return schemas.keysAt(responses).flatMap((status) => {
        const { place } = schemas.at([...responses, status]);
        return schemas.keysAt([...place, 'headers']).map((name) => name.toLowerCase());
      });
    }),
  );
}

function pairsOf(headers: Exchange['headers']): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    if (value === undefined) return [];
    return typeof value === 'string' ? [[name, value]] : value.map((single): [string, string] => [name, single]);
  });
}
