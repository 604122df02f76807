/** Builds the OpenAPI 3.1 document of the public API from the schemas of its bodies. */
import { createDocument, type ZodOpenApiOverride } from 'zod-openapi';
import type { Deprecation } from '../../domain/operations.ts';
import { headerComponents } from './headers.ts';
import { type DocumentedLimits, infoOf, securitySchemes, TAGS } from './info.ts';
import { parameterComponents } from './parameters.ts';
import { pathsWith } from './paths.ts';
import { responseComponents } from './responses.ts';

export type OpenApiDocument = ReturnType<typeof createDocument>;

export interface DocumentOptions {
  /** The limits of a key that has none of its own. */
  readonly limits: DocumentedLimits;
  /** Where the API is, without `/v1` or `/v2`. Default `/`: the server that the document came from. */
  readonly serverUrl?: string;
  /** What the answers announce; nothing by default. */
  readonly deprecations?: readonly Deprecation[];
}

/** The document for both surfaces. */
export function buildOpenApiDocument(options: DocumentOptions): OpenApiDocument {
  return createDocument(
    {
      openapi: '3.1.1',
      info: infoOf(options.limits),
      servers: [{ url: options.serverUrl ?? '/', description: 'This gateway' }],
      tags: [TAGS.v1, TAGS.v2],
      paths: pathsWith(options.deprecations ?? []),
      components: {
        headers: { ...headerComponents },
        parameters: { ...parameterComponents },
        responses: { ...responseComponents },
        securitySchemes: { ...securitySchemes },
      },
    },
    { override: simplify },
  );
}

/** Says the same in fewer words, so that people and generators can read it. */
const simplify: ZodOpenApiOverride = ({ jsonSchema }) => {
  // JSON knows no other keys than strings.
  delete jsonSchema.propertyNames;
  // Where the schema sets no bound of its own, the generator writes the range in which doubles hold every integer.
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
};
