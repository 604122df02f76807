/** `evalgate openapi`: the OpenAPI 3.1 documents of the public API and of the admin listener. */
import { Argument, type Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import type { Surface } from '../http/openapi/document.ts';
import { CliError, EXIT_CODES, makeCommand } from './command.ts';

export function openapiCommand(): Command {
  const command = makeCommand({
    name: 'openapi',
    summary: "print the public API's OpenAPI 3.1 document, or the admin listener's",
    details: 'It names the limits of the configuration in force. It is JSON with and without --json.',
    examples: ['evalgate openapi > openapi.json', 'evalgate openapi v2', 'evalgate openapi --admin'],
  });
  return command
    .addArgument(new Argument('[surface]', 'only this surface').choices(['v1', 'v2']))
    .option('--admin', 'the document of the admin listener')
    .option('--markdown', 'with --admin: as a page of documentation')
    .action(async (surface: Surface | undefined) => {
      const { admin = false, markdown = false } = command.opts<{ admin?: boolean; markdown?: boolean }>();
      if (admin ? surface !== undefined : markdown) {
        throw new CliError('Give a surface or --admin; --markdown goes with --admin.', EXIT_CODES.usage);
      }
      process.stdout.write(await (admin ? describeAdmin(markdown) : describePublic(surface)));
    });
}

async function describeAdmin(isMarkdown: boolean): Promise<string> {
  const { buildAdminDocument, describeAdminApi } = await import('../admin/openapi.ts');
  return isMarkdown ? describeAdminApi() : `${JSON.stringify(buildAdminDocument(), null, 2)}\n`;
}

async function describePublic(surface: Surface | undefined): Promise<string> {
  const { rateLimit: limits, api } = loadConfig({ env: process.env }).config;
  const { buildOpenApiDocument } = await import('../http/openapi/document.ts');
  const surfaces = surface === undefined ? {} : { surfaces: [surface] };
  const document = buildOpenApiDocument({ limits, deprecations: api.deprecations, ...surfaces });
  return `${JSON.stringify(document, null, 2)}\n`;
}
