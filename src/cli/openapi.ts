/** `evalgate openapi`: the public API's OpenAPI 3.1 document. */
import { Argument, type Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import type { Surface } from '../http/openapi/document.ts';
import { makeCommand } from './command.ts';
import type { Terminal } from './terminal.ts';

export function openapiCommand(terminal: Terminal): Command {
  const texts = {
    name: 'openapi',
    summary: "print the public API's OpenAPI 3.1 document",
    details: 'It names the limits of the configuration in force. It is JSON with and without --json.',
    examples: ['evalgate openapi > openapi.json', 'evalgate openapi v2'],
  };
  return makeCommand(texts, terminal)
    .addArgument(new Argument('[surface]', 'one surface alone').choices(['v1', 'v2']))
    .action(async (surface: Surface | undefined) => {
      const { config } = loadConfig({ env: terminal.env });
      const { buildOpenApiDocument } = await import('../http/openapi/document.ts');
      const { rateLimit: limits, api } = config;
      const surfaces = surface === undefined ? {} : { surfaces: [surface] };
      const document = buildOpenApiDocument({ limits, deprecations: api.deprecations, ...surfaces });
      terminal.out(`${JSON.stringify(document, null, 2)}\n`);
    });
}
