/**
 * Makes a typed client of a running gateway's own `/openapi.json` with a public generator, checks the types of a
 * program that reads all ten endpoints with it, and runs that program.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const program = join(root, 'test/openapi/client');

export interface TypedClientOptions {
  /** Where the gateway is, without `/v1` or `/v2`. */
  readonly baseUrl: string;
  /** A key with `reports.read`, and one with `calls.read` and `coaching.read`. */
  readonly v1Key: string;
  readonly v2Key: string;
  readonly ids: {
    readonly workspaceId: string;
    readonly reportId: string;
    readonly callId: string;
    readonly scorecardId: string;
  };
}

/**
 * The readings of the program: `Readings` of test/openapi/client/read-all-ten.ts, as JSON. Rejects with the output of the
 * generator, the compiler or the program if one of them fails.
 */
export async function readWithTypedClient(options: TypedClientOptions): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-client-'));
  try {
    await prepare(folder, options.baseUrl);
    await tool(folder, 'oazapfts', ['openapi.json', 'client.ts']);
    await tool(folder, 'tsc', ['-p', 'tsconfig.json']);
    const { baseUrl, v1Key, v2Key, ids } = options;
    const inOrder = [baseUrl, v1Key, v2Key, ids.workspaceId, ids.reportId, ids.callId, ids.scorecardId];
    const readings: unknown = JSON.parse(await node(folder, ['main.ts', ...inOrder]));
    return readings;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function prepare(folder: string, baseUrl: string): Promise<void> {
  const response = await fetch(`${baseUrl}/openapi.json`);
  if (!response.ok) throw new Error(`GET /openapi.json: ${response.status}`);
  await writeFile(join(folder, 'openapi.json'), await response.text());
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  const tsconfig = {
    extends: join(root, 'tsconfig.json'),
    // The generator's runtime names the types of fetch as a browser has them.
    compilerOptions: { lib: ['es2024', 'dom'], skipLibCheck: true },
    include: ['*.ts'],
    exclude: [],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
  for (const file of await readdir(program)) await copyFile(join(program, file), join(folder, file));
}

function tool(folder: string, name: string, args: readonly string[]): Promise<string> {
  return node(folder, [join(root, 'node_modules/.bin', name), ...args]);
}

async function node(folder: string, args: readonly string[]): Promise<string> {
  try {
    return (await run(process.execPath, args, { cwd: folder })).stdout;
  } catch (error) {
    const output = ['stdout', 'stderr'].map((stream) => String(Reflect.get(Object(error), stream)));
    throw new Error(output.join('\n'), { cause: error });
  }
}
