/** `evalgate openapi`: the OpenAPI 3.1 documents of the public API and the admin listener, and the schema of the store. */
import { Argument, type Command } from 'commander';
import type { Surface } from '../http/openapi/document.ts';
import { makeCommand, wrongCall } from './command.ts';
import { writeJson } from './output.ts';
import { SUMMARIES } from './summaries.ts';

interface Options {
  readonly admin?: boolean;
  readonly store?: boolean;
  readonly server?: string;
}

export function openapiCommand(): Command {
  return makeCommand({
    name: 'openapi',
    summary: SUMMARIES.openapi,
    details: 'It names the limits of the configuration in force. It is JSON with and without --json.',
    examples: [
      'evalgate openapi > openapi.json',
      'evalgate openapi v2 --server https://api.example.com',
      'evalgate openapi --admin',
      'evalgate openapi --store > store.schema.json',
    ],
  })
    .addArgument(new Argument('[surface]', 'only this surface').choices(['v1', 'v2']))
    .option('--server <url>', 'where the public API is, without /v1 or /v2 (default: the address of the document)')
    .option('--admin', 'the document of the admin listener')
    .option('--store', "the JSON Schema of the store's answers, which docs/store-interface.md describes")
    .action(async (surface: Surface | undefined, { admin = false, store = false, server }: Options) => {
      const isPublic = surface !== undefined || server !== undefined;
      if ([admin, store, isPublic].filter(Boolean).length > 1) {
        throw wrongCall('Give a surface and --server, or --admin, or --store.');
      }
      const own = admin ? adminDocument() : store ? storeSchema() : null;
      const document = await (own ?? publicDocument(surface, server));
      writeJson(document, 2);
    });
}

async function adminDocument() {
  const { buildAdminDocument } = await import('../admin/openapi.ts');
  return buildAdminDocument();
}

async function storeSchema() {
  const { buildStoreSchema } = await import('../upstream/json-schema.ts');
  return buildStoreSchema();
}

async function publicDocument(surface: Surface | undefined, server: string | undefined) {
  const { z } = await import('zod');
  if (server !== undefined && !z.url({ protocol: /^https?$/ }).safeParse(server).success) {
    throw wrongCall(
      `--server: ${JSON.stringify(server)} was given; allowed: an http:// or https:// address, such as https://api.example.com`,
    );
  }
  const { loadConfig } = await import('../config/load.ts');
  const { rateLimit: limits, api, changes } = loadConfig({ env: process.env }).config;
  const { buildOpenApiDocument } = await import('../http/openapi/document.ts');
  const surfaces = surface === undefined ? {} : { surfaces: [surface] };
  const serverUrl = server === undefined ? {} : { serverUrl: server.replace(/\/$/, '') };
  return buildOpenApiDocument({
    limits,
    deprecations: api.deprecations,
    hasFeed: changes.announced,
    ...surfaces,
    ...serverUrl,
  });
}
