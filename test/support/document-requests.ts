/** Requests made from an OpenAPI document's parameters: valid, at the edges of what is allowed, and beyond. */
import * as fc from 'fast-check';
import { z } from 'zod';
import { DocumentSchemas, type Place } from './openapi-schemas.ts';

const parameterSchema = z.object({ name: z.string(), in: z.enum(['path', 'query', 'header']) });
const valueSchema = z.object({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  format: z.string().optional(),
  pattern: z.string().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minLength: z.int().optional(),
  maxLength: z.int().optional(),
  enum: z.array(z.string()).optional(),
});

type ValueSchema = z.output<typeof valueSchema>;
type Parameter = z.output<typeof parameterSchema> & { readonly schema: ValueSchema };

export interface DocumentedRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface DocumentedRoute {
  readonly operationId: string;
  readonly requests: fc.Arbitrary<DocumentedRequest>;
}

/** Values that are there, by the parameter's name: else nothing would be found by a random id. */
export type Known = Readonly<Record<string, readonly string[]>>;

/** Every GET of the document that has an operationId. Throws if its parameters are of a form that is not known here. */
export function routesOf(document: object, known: Known): readonly DocumentedRoute[] {
  const schemas = new DocumentSchemas(document);
  return schemas.keysAt(['paths']).flatMap((template) => {
    const item = ['paths', template];
    const operationId = schemas.at([...item, 'get', 'operationId']).value;
    if (typeof operationId !== 'string') return [];
    const parameters = [
      [...item, 'parameters'],
      [...item, 'get', 'parameters'],
    ].flatMap((list) => schemas.keysAt(list).map((index) => parameterAt(schemas, [...list, index])));
    return [{ operationId, requests: requestsTo(template, parameters, known) }];
  });
}

function parameterAt(schemas: DocumentSchemas, reference: Place): Parameter {
  const { value, place } = schemas.at(reference);
  return { ...parameterSchema.parse(value), schema: valueSchema.parse(schemas.at([...place, 'schema']).value) };
}

function requestsTo(template: string, parameters: readonly Parameter[], known: Known): fc.Arbitrary<DocumentedRequest> {
  const paths = parameters.filter((one) => one.in === 'path');
  const queries = parameters.filter((one) => one.in === 'query');
  const headers = parameters.filter((one) => one.in === 'header');
  return fc
    .record({
      steps: fc.tuple(...paths.map((one) => pathValue(one, known[one.name] ?? []))),
      query: fc.array(queryPart(queries, known), { maxLength: 5 }),
      headers: fc.subarray([...headers]).chain((some) => fc.tuple(...some.map(headerOf))),
    })
    .map(({ steps, query, headers: sent }) => {
      const path = paths.reduce(
        (text, { name }, index) => text.replace(`{${name}}`, () => steps[index] ?? ''),
        template,
      );
      return { path: query.length === 0 ? path : `${path}?${query.join('&')}`, headers: Object.fromEntries(sent) };
    });
}

/** Mostly what is there, so that requests get past the look-up. */
function pathValue({ schema }: Parameter, known: readonly string[]): fc.Arbitrary<string> {
  const made = valueOf(schema)
    .filter((text) => text !== '' && text !== '.' && text !== '..')
    .map(encodeURIComponent);
  return known.length === 0
    ? made
    : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...known) }, { weight: 1, arbitrary: made });
}

function queryPart(parameters: readonly Parameter[], known: Known): fc.Arbitrary<string> {
  const unknown = fc.tuple(fc.string({ maxLength: 20 }), fc.string({ maxLength: 20 })).map(pairOf);
  const own = parameters.map((one) => {
    const values = known[one.name] ?? [];
    const value = values.length === 0 ? valueOf(one.schema) : fc.oneof(fc.constantFrom(...values), valueOf(one.schema));
    return value.map((text) => pairOf([one.name, text]));
  });
  return fc.oneof(...own.map((arbitrary) => ({ weight: 4, arbitrary })), { weight: 1, arbitrary: unknown });
}

function headerOf({ name, schema }: Parameter): fc.Arbitrary<readonly [string, string]> {
  // Node's client sends no others.
  return valueOf(schema).map((text) => [name, text.replaceAll(/[^\t\x20-\x7e]/g, '?')] as const);
}

function pairOf([name, value]: readonly [string, string]): string {
  return `${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
}

function valueOf(schema: ValueSchema): fc.Arbitrary<string> {
  const anything = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 120 }),
    fc.string({ unit: 'binary-ascii', maxLength: 40 }),
    fc.constantFrom('', ' ', '0', '-0', '1e3', '1.5', 'null', '__proto__', '../..', '%00', '\u{1F600}', 'NaN', 'false'),
  );
  return fc.oneof({ weight: 3, arbitrary: allowedBy(schema) }, { weight: 1, arbitrary: anything });
}

/** Valid values and those right beside the bounds. */
function allowedBy(schema: ValueSchema): fc.Arbitrary<string> {
  const { type, format, minimum = 0, maximum = 999_999_999, minLength = 0, maxLength = 100 } = schema;
  if (schema.enum !== undefined && schema.enum.length > 0) return fc.constantFrom(...schema.enum);
  if (type === 'integer') {
    const edges = [minimum - 1, minimum, minimum + 1, maximum - 1, maximum, maximum + 1].map(String);
    return fc.oneof(fc.integer({ min: minimum, max: Math.min(maximum, 1000) }).map(String), fc.constantFrom(...edges));
  }
  if (format === 'uuid') return fc.uuid();
  if (schema.pattern !== undefined) return fc.stringMatching(new RegExp(schema.pattern, 'u'));
  const lengths = [minLength, maxLength, maxLength + 1].filter((length) => length >= 0);
  return fc.oneof(
    fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, 40) }),
    fc.constantFrom(...lengths).map((length) => 'x'.repeat(length)),
  );
}
