/** Clients that hey-api and openapi-typescript generate from the document call every operation of a running gateway. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual, promisify } from 'node:util';
import { z } from 'zod';
import { type Check, operationsIn, toolPath, TOOLS, type World } from './world.ts';

const run = promisify(execFile);
const PROGRAMS = join(import.meta.dirname, 'clients');
const HEY_API_CONFIG = {
  input: 'openapi.json',
  output: { path: 'hey-api', module: { extension: '.ts' } },
  plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
};
const TSCONFIG = {
  compilerOptions: {
    target: 'es2023',
    lib: ['es2023', 'dom', 'dom.iterable'],
    module: 'nodenext',
    moduleResolution: 'nodenext',
    noEmit: true,
    allowImportingTsExtensions: true,
    verbatimModuleSyntax: true,
    strict: true,
    skipLibCheck: true,
  },
  include: ['*.ts'],
};
const NODE_TYPES = 'declare const process: { argv: string[]; stdout: { write(text: string): void } };\n';
const readingsSchema = z.record(z.string(), z.record(z.string(), z.unknown()));

/**
 * Generates both clients, checks the types of the programs that use them, and runs these. The readings must name every
 * operationId of the document, so that a new operation fails until the programs call it.
 */
export async function checkClients({ document, target }: World): Promise<readonly Check[]> {
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-clients-'));
  try {
    await cp(PROGRAMS, folder, { recursive: true });
    await symlink(join(TOOLS, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
    await writeFile(join(folder, 'process.d.ts'), NODE_TYPES);
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
    await writeFile(join(folder, 'openapi.json'), JSON.stringify(document));
    await writeFile(join(folder, 'openapi-ts.config.mjs'), `export default ${JSON.stringify(HEY_API_CONFIG)};\n`);
    await node(folder, [toolPath('openapi-ts'), '--no-log-file']);
    await node(folder, [toolPath('openapi-typescript'), 'openapi.json', '--output', 'openapi-typescript/schema.ts']);
    await node(folder, [toolPath('tsc'), '-p', '.']);
    const output = await node(folder, ['main.ts', JSON.stringify(target)]);
    return checksOf(
      readingsSchema.parse(JSON.parse(output)),
      operationsIn(document).map(({ operationId }) => operationId),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function checksOf(readings: z.output<typeof readingsSchema>, operations: readonly string[]): readonly Check[] {
  const [first] = Object.values(readings);
  return Object.entries(readings).map(([client, values]) => {
    const missing = operations.filter((operation) => !Object.hasOwn(values, operation));
    const called = `${Object.keys(values).length} of ${operations.length} operations called`;
    const faults = [
      ...missing.map((operation) => `${operation} is not called`),
      ...(isDeepStrictEqual(values, first) ? [] : [`it read ${JSON.stringify(values)}, not ${JSON.stringify(first)}`]),
    ];
    return { name: `client of ${client}`, measured: called, faults };
  });
}

/** Runs a script; rejects with what it printed if it fails. */
async function node(folder: string, args: readonly string[]): Promise<string> {
  try {
    return (await run(process.execPath, args, { cwd: folder })).stdout;
  } catch (error) {
    const output = ['stdout', 'stderr'].map((stream) => String(Reflect.get(Object(error), stream)));
    throw new Error(`${args.join(' ')}:\n${output.join('\n')}`, { cause: error });
  }
}
