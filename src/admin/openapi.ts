/** The admin listener's interface as an OpenAPI 3.1 document, and as the reference in docs/admin-api.md. */
import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiOverride } from 'zod-openapi';
import { VERSION } from '../version.ts';
import { errorSchema } from './answers.ts';
import { type AdminRoute, PROBES, ROUTES } from './api.ts';

export type AdminDocument = ReturnType<typeof createDocument>;

const ABOUT = `Everything that operators do with a gateway. Bodies and answers are JSON; durations are written like \`30s\`, \`5m\` or \`1d\`, times in ISO 8601. If ADMIN_TOKEN is set, every request needs \`Authorization: Bearer <token>\`, except for the probes and the dashboard. Members may be added to answers in any release.`;

export function buildAdminDocument(): AdminDocument {
  const operations = [
    ...Object.entries(PROBES).map(([id, route]) => ({ id, route, security: [] })),
    ...Object.entries(ROUTES).map(([id, route]) => ({ id, route, security: [{ AdminToken: [] }, {}] })),
  ];
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const { id, route, security } of operations) {
    (paths[route.path] ??= {})[route.method.toLowerCase()] = { operationId: id, security, ...operationOf(route) };
  }
  return createDocument(
    {
      openapi: '3.1.1',
      info: { title: 'evalgate: admin listener', version: VERSION, description: ABOUT },
      servers: [{ url: '/', description: 'This listener' }],
      paths,
      components: { securitySchemes: { AdminToken: { type: 'http', scheme: 'bearer' } } },
    },
    { override: simplify },
  );
}

function operationOf({ path, summary, query = {}, body, status = 200, answer }: AdminRoute): ZodOpenApiOperationObject {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path' as const,
    required: true,
    schema: { type: 'string' as const },
  }));
  const inQuery = Object.entries(query).map(([name, { description, required = false, repeatable = false }]) => ({
    name,
    in: 'query' as const,
    required,
    description,
    schema: repeatable ? { type: 'array' as const, items: { type: 'string' as const } } : { type: 'string' as const },
  }));
  const content = answer === null ? { 'text/plain': {} } : { 'application/json': { schema: answer } };
  return {
    summary,
    parameters: [...inPath, ...inQuery],
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: body(null) } } } }),
    responses: {
      [status]: { description: 'Done', content },
      default: {
        description: 'Refused or failed; the message says what was given, what is allowed and what to do',
        content: { 'application/json': { schema: errorSchema } },
      },
    },
  };
}

/** Leaves out what says nothing: JSON knows no other keys than strings, and doubles hold integers to that bound. */
const simplify: ZodOpenApiOverride = ({ jsonSchema }) => {
  delete jsonSchema.propertyNames;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
};

type Described = z.core.JSONSchema.BaseSchema;

/** The reference in Markdown. */
export function describeAdminApi(): string {
  const types = new Map<string, Described>();
  const membersOf = (schema: z.ZodType, io: 'input' | 'output'): string => {
    const { $defs = {}, ...described } = z.toJSONSchema(schema, { io, reused: 'inline' });
    for (const [name, type] of Object.entries($defs)) types.set(name, type);
    return membersText(described, '');
  };
  const sections = [...Object.values<AdminRoute>(PROBES), ...Object.values<AdminRoute>(ROUTES)].flatMap((route) => {
    const { method, path, summary, query = {}, body, status = 200, answer } = route;
    const parameters = Object.entries(query).map(([name, { description }]) => `- \`${name}\`: ${description}`);
    return [
      `## ${method} ${path}`,
      `${summary.slice(0, 1).toUpperCase()}${summary.slice(1)}.`,
      ...(parameters.length === 0 ? [] : ['Query parameters:', parameters.join('\n')]),
      ...(body === undefined ? [] : ['Takes:', membersOf(body(null), 'input')]),
      ...(answer === null ? [] : [`Answers ${status}:`, membersOf(answer, 'output')]),
    ];
  });
  const named = [...types].flatMap(([name, schema]) => [`## ${name}`, membersText(schema, '')]);
  return `${[
    '# The admin listener',
    ABOUT,
    '`evalgate openapi --admin` prints the same as an OpenAPI 3.1 document, and the listener serves it at `/openapi.json`. `evalgate openapi --admin --markdown` makes this page.',
    ...sections,
    ...named,
  ].join('\n\n')}\n`;
}

/** A list item per member; the members of a member one level further in. */
function membersText(schema: Described, indent: string): string {
  const required = new Set(schema.required);
  const members = Object.entries(innermost(schema).properties ?? {});
  if (members.length === 0) return `${indent}${typeText(schema)}`;
  return members
    .map(([name, member]) => {
      if (typeof member === 'boolean') return `${indent}- \`${name}\``;
      const optional = required.has(name) ? '' : ', optional';
      const line = `${indent}- \`${name}\` (${typeText(member)}${optional})${member.description === undefined ? '' : `: ${member.description}`}`;
      const isNested = innermost(member).properties !== undefined;
      return isNested ? `${line}\n${membersText(innermost(member), `${indent}  `)}` : line;
    })
    .join('\n');
}

/** The schema of what is not null, and of the elements of an array. */
function innermost(schema: Described): Described {
  const inner = schema.anyOf?.find(({ type }) => type !== 'null') ?? schema.items ?? null;
  return inner === null || typeof inner === 'boolean' || Array.isArray(inner) ? schema : innermost(inner);
}

function typeText(schema: Described): string {
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeText).join(' or ');
  if (schema.$ref !== undefined)
    return `[${schema.$ref.split('/').at(-1)}](#${schema.$ref.split('/').at(-1)?.toLowerCase()})`;
  if (schema.type === 'array') return `array of ${typeText(innermost(schema))}`;
  return [schema.type ?? 'anything'].flat().join(' or ');
}
