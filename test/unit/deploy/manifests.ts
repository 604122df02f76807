/** Kubernetes' manifests: read, and held against its schemas and those of the Prometheus operator. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { filesBelow, parseYaml, readText, ROOT } from './files.ts';

const run = promisify(execFile);

const manifestSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string().optional(),
    labels: z.record(z.string(), z.string()).default({}),
  }),
});

export type Manifest = z.infer<typeof manifestSchema>;

export interface Placed {
  /** The file, or the overlay that it is rendered from. */
  readonly place: string;
  readonly manifest: Manifest;
}

const KUSTOMIZE = /^kustomize\.config\.k8s\.io\//;

/** All manifests of deploy/kubernetes as they stand in the files. */
export function readManifests(): readonly Placed[] {
  return filesBelow('deploy/kubernetes', '.yaml').flatMap((place) => manifestsOf(place, readText(place)));
}

/** The manifests of a text; what is for kustomize alone, and the gateway's own configuration, are none. */
export function manifestsOf(place: string, text: string): readonly Placed[] {
  return parseYaml(text).flatMap((document) => {
    const parsed = z.looseObject({ apiVersion: z.string() }).safeParse(document);
    if (!parsed.success || KUSTOMIZE.test(parsed.data.apiVersion)) return [];
    return [{ place, manifest: manifestSchema.parse(document) }];
  });
}

/** Where the type and the schema of a kind are. */
function moduleOf({ apiVersion, kind }: Manifest): string {
  const isOperators = apiVersion.startsWith('monitoring.coreos.com/');
  return `${isOperators ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models'}/${apiVersion}/${kind}`;
}

/**
 * What is wrong with the manifests, a line each; empty where nothing is. The schemas look at values and don't mind a name
 * that they don't know; the types, of which each manifest is written as a literal, do.
 */
export async function faultsOf(placed: readonly Placed[]): Promise<string> {
  const cache = join(ROOT, '.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'manifests-'));
  try {
    await writeFile(join(folder, 'manifests.ts'), sourceOf(placed));
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
    const typed = await outcome([TSC, '-p', folder]);
    const valued = await outcome([join(folder, 'manifests.ts')]);
    return `${typed}${valued}`.trim();
  } finally {
    await rm(folder, { recursive: true });
  }
}

const TSC = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
const TSCONFIG = {
  compilerOptions: {
    target: 'es2024',
    module: 'nodenext',
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    types: [],
    // The manifest and its field, in full.
    pretty: false,
    noErrorTruncation: true,
  },
  files: ['manifests.ts'],
};

function sourceOf(placed: readonly Placed[]): string {
  const checks = placed.map(({ place, manifest }, index) => {
    const { kind } = manifest;
    return [
      `import { ${kind} as Kind${index}, type I${kind} as Type${index} } from '${moduleOf(manifest)}';`,
      // One line, so that a fault of a type names the manifest.
      `const ${nameOf(place, manifest)}_${index}: Type${index} = ${JSON.stringify(manifest)};`,
      `try { new Kind${index}(${nameOf(place, manifest)}_${index}).validate(); }`,
      `catch (error) { faults.push(${JSON.stringify(`${place}: ${kind}`)} + ': ' + String(error)); }`,
    ].join('\n');
  });
  return [
    'const faults: string[] = [];',
    ...checks,
    "if (faults.length > 0) throw new Error(faults.join('\\n'));",
  ].join('\n');
}

function nameOf(place: string, { kind }: Manifest): string {
  return `${place}_${kind}`.replaceAll(/[^A-Za-z0-9]/g, '_');
}

/** What a program of Node.js says where it fails; nothing where it doesn't. */
async function outcome(args: readonly string[]): Promise<string> {
  try {
    await run(process.execPath, args, { maxBuffer: 10_000_000 });
    return '';
  } catch (error) {
    const said = z.object({ stdout: z.string(), stderr: z.string() }).parse(error);
    return `${said.stdout}${said.stderr}\n`;
  }
}
