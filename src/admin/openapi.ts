/** The admin listener's interface as an OpenAPI 3.1 document. */
import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiOverride } from 'zod-openapi';
import { VERSION } from '../version.ts';
import { errorSchema } from '../operations/answers.ts';
import { type AdminRoute, PROBES, ROUTES } from '../operations/api.ts';

export type AdminDocument = ReturnType<typeof createDocument>;

const ABOUT = `Everything that operators do with a gateway. Bodies and answers are JSON; durations are written like \`30s\`, \`5m\` or \`1d\`, times in ISO 8601. If ADMIN_TOKEN is set, every request needs \`Authorization: Bearer <token>\`, except for the probes and the dashboard, and the token must have a role that allows it. Members may be added to answers in any release.`;

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

function operationOf({
  path,
  roles,
  summary,
  query,
  body,
  status = 200,
  answer,
  mediaType = 'text/plain',
}: AdminRoute): ZodOpenApiOperationObject {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, z.string()] as const);
  const content = answer === null ? { [mediaType]: {} } : { 'application/json': { schema: answer } };
  return {
    summary,
    ...(roles === null ? {} : { description: `Roles: ${roles.join(', ')}.` }),
    requestParams: { path: z.object(Object.fromEntries(inPath)), ...(query === undefined ? {} : { query }) },
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
