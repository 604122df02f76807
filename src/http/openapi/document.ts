/** Builds the OpenAPI 3.1 document of the public API from the declarations of its routes. */
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiOverride } from 'zod-openapi';
import { type Deprecation, deprecationOf } from '../../domain/operations.ts';
import type { QuotaLimits } from '../../quota/limiter.ts';
import { routesOf } from '../routes.ts';
import { bodyExamples } from './examples.ts';
import { headerComponents, headerParameters } from './headers.ts';
import { EXAMPLE_ORIGIN, introductionOf } from './info.ts';
import { hasEtag, responseComponents, responsesOf } from './responses.ts';
import type { Route } from '../state.ts';

export type OpenApiDocument = ReturnType<typeof createDocument>;
export type Surface = Route['surface'];

/** One key serves both surfaces if it has the scopes, so the document has one way to give it. */
const KEY_SCHEME = 'ApiKey';

/** How the document names each surface, and which keys it takes. */
const SURFACES = {
  v1: {
    tag: { name: 'Workspace reports (v1)', description: 'Reports of one workspace. Errors are `{"error": "..."}`.' },
    keyDescription: 'v1: with the scope `reports.read`, and of the workspace in the path.',
  },
  v2: {
    tag: {
      name: 'Calls (v2)',
      description: 'Calls of all workspaces of the key. Errors are `{"error": {"message": "..."}}`.',
    },
    keyDescription: 'v2: with `calls.read` for calls and their parts, `coaching.read` for rubrics.',
  },
} as const;

export interface DocumentOptions {
  /** The limits of a key that has none of its own. */
  readonly limits: QuotaLimits;
  /** By default both. */
  readonly surfaces?: readonly Surface[];
  /** Where the API is, without `/v1` or `/v2`. Default `/`: the server that the document came from. */
  readonly serverUrl?: string;
  /** Those that the responses announce. */
  readonly deprecations: readonly Deprecation[];
  /** Whether there is a feed of changes. */
  readonly hasFeed: boolean;
}

export function buildOpenApiDocument({
  limits,
  surfaces = ['v1', 'v2'],
  serverUrl = '/',
  deprecations,
  hasFeed,
}: DocumentOptions): OpenApiDocument {
  const routes = routesOf(hasFeed).filter(({ surface }) => surfaces.includes(surface));
  return createDocument(
    {
      openapi: '3.1.1',
      info: {
        title: 'evalgate: coaching reports and calls',
        version: '1.0.0',
        description: introductionOf(limits, serverUrl === '/' ? EXAMPLE_ORIGIN : serverUrl, hasFeed),
        contact: { name: 'The operator of this gateway' },
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: serverUrl, description: 'This gateway' }],
      tags: surfaces.map((surface) => SURFACES[surface].tag),
      paths: Object.fromEntries(
        routes.map((route) => [
          route.template,
          { get: operationOf(route, deprecationOf(deprecations, route.surface, route.name)) },
        ]),
      ),
      components: {
        headers: { ...headerComponents },
        parameters: { ...headerParameters },
        responses: Object.fromEntries(
          surfaces.flatMap((surface) => Object.entries(responseComponents(surface, hasFeed))),
        ),
        securitySchemes: { [KEY_SCHEME]: { type: 'http', scheme: 'bearer', description: keyDescriptionOf(surfaces) } },
      },
    },
    { override: simplify },
  );
}

function keyDescriptionOf(surfaces: readonly Surface[]): string {
  return `An API key. ${surfaces.map((surface) => SURFACES[surface].keyDescription).join(' ')}`;
}

function operationOf(route: Route, deprecation: Deprecation | null): ZodOpenApiOperationObject {
  const headers = hasEtag(route) ? ['IfNoneMatch', 'RequestId'] : ['RequestId'];
  return {
    operationId: route.name,
    tags: [SURFACES[route.surface].tag.name],
    summary: route.summary,
    description: descriptionOf(route, deprecation),
    ...(deprecation === null ? {} : { deprecated: true }),
    security: [{ [KEY_SCHEME]: [] }],
    ...(route.scope === null ? {} : { 'x-required-scope': route.scope }),
    parameters: [...route.parameters, ...headers.map((name) => ({ $ref: `#/components/parameters/${name}` }))],
    responses: responsesOf(route, bodyExamples[route.name]),
  };
}

function descriptionOf({ description, scope }: Route, deprecation: Deprecation | null): string {
  const access = scope === null ? 'Any active key may ask, whatever its scopes.' : `Scope: \`${scope}\`.`;
  const notice = deprecation === null ? [] : [noticeOf(deprecation)];
  return [...notice, description, access].join('\n\n');
}

function noticeOf({ fromMs, untilMs, link }: Deprecation): string {
  const end = untilMs === null ? '' : ` and may be gone from ${dayOf(untilMs)} on`;
  return `Deprecated from ${dayOf(fromMs)} on${end}.${link === null ? '' : ` See <${link}>.`}`;
}

function dayOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}

/** Says the same in fewer words, so that people and generators can read it. */
const simplify: ZodOpenApiOverride = ({ jsonSchema }) => {
  // JSON knows no other keys than strings.
  delete jsonSchema.propertyNames;
  // If the schema sets no bound of its own, the generator writes the range in which doubles hold every integer.
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  // Generators make 32 bits of an integer without a format; a schema whose integers never need more says so.
  if (jsonSchema.type === 'integer') jsonSchema.format ??= 'int64';
};
