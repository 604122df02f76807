/** The public API as its document has it: paths, scopes, parameters, statuses, headers, and members of bodies. */
import { expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import { startTestGateway } from '../../support/gateway.ts';
import { DocumentSchemas, memberOf } from '../../support/openapi-schemas.ts';
import { expectPinned } from './pin.ts';

const gateway = await forFile(startTestGateway());
const { json } = await gateway.get('/openapi.json', { isUndocumented: true });
const schemas = new DocumentSchemas(z.looseObject({ openapi: z.string() }).parse(json));

/** A schema in a line: its type, and what it allows. Its words are left out. */
function rule(schema: unknown): string {
  const reference = memberOf(schema, '$ref');
  if (typeof reference === 'string') return reference.split('/').at(-1) ?? '';
  const entries = typeof schema === 'object' && schema !== null ? Object.entries(schema) : [];
  const words = ['description', 'title', 'examples', 'example', 'properties', 'required', 'additionalProperties'];
  const parts = entries
    .filter(([name]) => !words.includes(name))
    .map(([name, value]: [string, unknown]) => {
      if (name === 'type') return Array.isArray(value) ? value.join(' | ') : String(value);
      if (name === 'items') return `of ${rule(value)}`;
      if (['anyOf', 'oneOf', 'allOf'].includes(name) && Array.isArray(value)) return value.map(rule).join(' | ');
      return `${name} ${JSON.stringify(value)}`;
    });
  return parts.join(', ');
}

/** The members of a schema, those of schemas inside it indented. */
function membersOf(schema: unknown, indent: string): readonly string[] {
  const inner = memberOf(schema, 'items');
  if (inner !== undefined) return membersOf(inner, indent);
  const properties = memberOf(schema, 'properties');
  if (typeof properties !== 'object' || properties === null) return [];
  const required = z.array(z.string()).catch([]).parse(memberOf(schema, 'required'));
  return Object.entries(properties).flatMap(([name, member]: [string, unknown]) => [
    `${indent}${name}${required.includes(name) ? '' : '?'}: ${rule(member)}`,
    ...membersOf(member, `${indent}  `),
  ]);
}

function operationLines(path: string): readonly string[] {
  const place = ['paths', path, 'get'];
  const operation = schemas.at(place).value;
  const parameters = schemas.keysAt([...place, 'parameters']).map((index) => {
    const { value } = schemas.at([...place, 'parameters', index]);
    const name = String(memberOf(value, 'name'));
    return `    ${String(memberOf(value, 'in'))} ${name}: ${rule(memberOf(value, 'schema'))}`;
  });
  const responses = schemas.keysAt([...place, 'responses']).map((status) => {
    const response = schemas.at([...place, 'responses', status]).place;
    const headers = schemas.keysAt([...response, 'headers']).map((name) => {
      const isRequired = memberOf(schemas.at([...response, 'headers', name]).value, 'required') === true;
      return isRequired ? name : `${name}?`;
    });
    const [type] = schemas.keysAt([...response, 'content']);
    const body =
      type === undefined ? 'no body' : rule(memberOf(schemas.at([...response, 'content', type]).value, 'schema'));
    return `    ${status}: ${body}; ${shortened(headers)}`;
  });
  const scope = z.string().default('any scope').parse(memberOf(operation, 'x-required-scope'));
  return ['', `GET ${path}: ${String(memberOf(operation, 'operationId'))}, ${scope}`, ...parameters, ...responses];
}

const OF_LIMIT = /^(?:X-)?RateLimit/;

/** The twelve headers of the rate limit always come together. */
function shortened(headers: readonly string[]): string {
  const ofLimit = headers.filter((name) => OF_LIMIT.test(name));
  expect([0, 12]).toContain(ofLimit.length);
  const together =
    ofLimit.length === 0 ? [] : [ofLimit.every((name) => name.endsWith('?')) ? '(rate limit)?' : '(rate limit)'];
  return [...headers.filter((name) => !OF_LIMIT.test(name)), ...together].join(' ');
}

test('the public API is as pinned', async () => {
  const bodies = schemas.keysAt(['components', 'schemas']).flatMap((name) => {
    const { value } = schemas.at(['components', 'schemas', name]);
    expect([name, memberOf(value, 'additionalProperties')]).toEqual([name, false]);
    return ['', name, ...membersOf(value, '    ')];
  });
  const headers = new Set(
    schemas.keysAt(['components', 'headers']).map((name) => {
      const { value } = schemas.at(['components', 'headers', name]);
      return `${name}: ${rule(memberOf(value, 'schema'))}`;
    }),
  );
  await expectPinned('api.txt', [
    ...schemas.keysAt(['paths']).flatMap(operationLines),
    '',
    '# Headers',
    ...headers,
    '',
    '# Bodies',
    ...bodies,
  ]);
});
