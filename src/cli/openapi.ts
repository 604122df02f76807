/** `evalgate openapi`: the OpenAPI 3.1 documents of the public API and of the admin listener. */
import { Argument, type Command } from 'commander';
import { z } from 'zod';
import { loadConfig } from '../config/load.ts';
import type { Surface } from '../http/openapi/document.ts';
import { makeCommand, wrongCall } from './command.ts';
import { writeJson } from './output.ts';

interface Options {
  readonly admin?: boolean;
  readonly server?: string;
}

const ORIGIN = z.url({ protocol: /^https?$/ });

export function openapiCommand(): Command {
  return makeCommand({
    name: 'openapi',
    summary: "print the public API's OpenAPI 3.1 document, or the admin listener's",
    details: 'It names the limits of the configuration in force. It is JSON with and without --json.',
    examples: [
      'evalgate openapi > openapi.json',
      'evalgate openapi v2 --server https://api.example.com',
      'evalgate openapi --admin',
    ],
  })
    .addArgument(new Argument('[surface]', 'only this surface').choices(['v1', 'v2']))
    .option('--server <url>', 'where the public API is, without /v1 or /v2 (default: the address of the document)')
    .option('--admin', 'the document of the admin listener')
    .action(async (surface: Surface | undefined, { admin = false, server }: Options) => {
      if (admin && (surface !== undefined || server !== undefined)) {
        throw wrongCall('Give a surface and --server, or --admin.');
      }
      const document = await (admin ? adminDocument() : publicDocument(surface, server));
      writeJson(document, 2);
    });
}

async function adminDocument() {
  const { buildAdminDocument } = await import('../admin/openapi.ts');
  return buildAdminDocument();
}

async function publicDocument(surface: Surface | undefined, server: string | undefined) {
  if (server !== undefined && !ORIGIN.safeParse(server).success) {
    throw wrongCall(
      `--server: ${JSON.stringify(server)} was given; allowed: an http:// or https:// address, such as https://api.example.com`,
    );
  }
  const { rateLimit: limits, api } = loadConfig({ env: process.env }).config;
  const { buildOpenApiDocument } = await import('../http/openapi/document.ts');
  const surfaces = surface === undefined ? {} : { surfaces: [surface] };
  const serverUrl = server === undefined ? {} : { serverUrl: server.replace(/\/$/, '') };
  return buildOpenApiDocument({ limits, deprecations: api.deprecations, ...surfaces, ...serverUrl });
}
