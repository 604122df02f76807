/** docs/admin-api.md, from the declarations of the admin listener. `vitest run --update` of its test writes it. */
import { z } from 'zod';
import { type AdminRoute, PROBES, ROUTES } from '../../../src/operations/api.ts';
import { ROLES } from '../../../src/config/admin-tokens.ts';
import { buildAdminDocument } from '../../../src/admin/openapi.ts';

type Described = z.core.JSONSchema.BaseSchema;

/** The page in Markdown. */
export function describeAdminApi(): string {
  const types = new Map<string, Described>();
  const jsonOf = (schema: z.ZodType, io: 'input' | 'output'): Described => {
    const { $defs = {}, ...described } = z.toJSONSchema(schema, { io, reused: 'inline' });
    for (const [name, type] of Object.entries($defs)) types.set(name, type);
    return described;
  };
  const sections = Object.values<AdminRoute>({ ...PROBES, ...ROUTES }).flatMap((route) => {
    const { method, path, summary, query, body, status = 200, answer } = route;
    const parameters = query === undefined ? [] : Object.entries(jsonOf(query, 'input').properties ?? {});
    const lines = parameters.map(
      ([name, schema]) => `- \`${name}\`: ${z.object({ description: z.string() }).parse(schema).description}`,
    );
    return [
      `## ${method} ${path}`,
      `${summary.slice(0, 1).toUpperCase()}${summary.slice(1)}.`,
      ...(lines.length === 0 ? [] : ['Query parameters:', lines.join('\n')]),
      ...(body === undefined ? [] : ['Takes:', membersText(jsonOf(body(null), 'input'), '')]),
      ...(answer === null ? [] : [`Answers ${status}:`, membersText(jsonOf(answer, 'output'), '')]),
    ];
  });
  const named = [...types].flatMap(([name, schema]) => [`## ${name}`, membersText(schema, '')]);
  return `${[
    '# The admin listener',
    buildAdminDocument().info.description,
    '`evalgate openapi --admin` prints the same as an OpenAPI 3.1 document, and the listener serves it at `/openapi.json`.',
    '## Roles',
    ROLES_TEXT,
    rolesTable(),
    ...sections,
    ...named,
  ].join('\n\n')}\n`;
}

const ROLES_TEXT =
  'Each token of ADMIN_TOKEN has a role: `alice=TOKEN` has the role `admin`, `bob:viewer=TOKEN` the role `viewer`. A refusal is 403 and goes into the audit, once an hour per token and endpoint. HEAD is allowed as GET is.';

/** A row per route, a column per role. */
function rolesTable(): string {
  const rows = Object.values<AdminRoute>(ROUTES).map(({ method, path, roles }) => {
    const marks = ROLES.map((role) => (roles === null || roles.includes(role) ? 'yes' : ''));
    return `| \`${method} ${path}\` | ${marks.join(' | ')} |`;
  });
  return [`| Endpoint | ${ROLES.join(' | ')} |`, `| --- |${' --- |'.repeat(ROLES.length)}`, ...rows].join('\n');
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
