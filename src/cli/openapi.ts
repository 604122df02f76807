/** `evalgate openapi`: the public API's OpenAPI 3.1 document. */
import { Argument, type Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import type { Surface } from '../http/openapi/document.ts';
import { makeCommand } from './command.ts';

export function openapiCommand(): Command {
  return makeCommand({
    name: 'openapi',
    summary: "print the public API's OpenAPI 3.1 document",
    details: 'It names the limits of the configuration in force. It is JSON with and without --json.',
    examples: ['evalgate openapi > openapi.json', 'evalgate openapi v2'],
  })
    .addArgument(new Argument('[surface]', 'only this surface').choices(['v1', 'v2']))
    .action(async (surface: Surface | undefined) => {
      const { rateLimit: limits, api } = loadConfig({ env: process.env }).config;
      const { buildOpenApiDocument } = await import('../http/openapi/document.ts');
      const surfaces = surface === undefined ? {} : { surfaces: [surface] };
      const document = buildOpenApiDocument({ limits, deprecations: api.deprecations, ...surfaces });
      process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
    });
}
