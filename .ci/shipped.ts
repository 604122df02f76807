/**
 * What the package ships besides its own code: the production dependencies of the lockfile, and the files of Swagger UI.
 *
 *     node .ci/shipped.ts files     copies the files of Swagger UI and all licences into dist (`npm pack` does this)
 *     node .ci/shipped.ts sbom      prints the bill of materials as CycloneDX JSON (`npm run sbom`)
 *     node .ci/shipped.ts sizes     prints the size of each family of dependencies
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const ROOT = join(import.meta.dirname, '..');
/** Its package brings a script that reports installations, so it is no dependency: only the files that are served are shipped. */
const SWAGGER_UI = 'node_modules/swagger-ui-dist';
const SWAGGER_UI_FILES = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'];
const LICENCE_FILE = /^(?:licen[cs]e|notice|copying)/i;

const packageSchema = z.object({
  version: z.string(),
  license: z.string().optional(),
  dev: z.boolean().optional(),
  dependencies: z.record(z.string(), z.string()).optional(),
});
const lockSchema = z.object({ packages: z.record(z.string(), packageSchema) });
const propertySchema = z.looseObject({ name: z.string() });
const bomSchema = z.looseObject({
  metadata: z.looseObject({ component: z.looseObject({ name: z.string() }) }),
  components: z.array(z.looseObject({ 'bom-ref': z.string(), properties: z.array(propertySchema).optional() })),
  dependencies: z.array(z.looseObject({ ref: z.string(), dependsOn: z.array(z.string()) })),
});

type Packages = ReadonlyMap<string, z.output<typeof packageSchema>>;

const locked: Packages = new Map(Object.entries(lockSchema.parse(readJson('package-lock.json')).packages));
const shipped: Packages = new Map(
  [...locked].filter(([path, { dev }]) => path === SWAGGER_UI || (path !== '' && dev !== true)),
);

const COMMANDS = { files: copyFiles, sbom: printBom, sizes: printSizes };
const command = process.argv[2] ?? '';
if (command === 'files' || command === 'sbom' || command === 'sizes') COMMANDS[command]();
else throw new Error(`Which one of ${Object.keys(COMMANDS).join(', ')}? Given: "${command}".`);

function copyFiles(): void {
  const folder = join(ROOT, 'dist/swagger-ui');
  mkdirSync(folder, { recursive: true });
  for (const name of SWAGGER_UI_FILES) copyFileSync(join(ROOT, SWAGGER_UI, name), join(folder, name));
  writeFileSync(join(ROOT, 'dist/LICENSES.txt'), [...shipped.keys()].map(licenceOf).join('\n'));
}

/** The name of a package, its licence by its SPDX identifier, and the texts that it comes with. */
function licenceOf(path: string): string {
  const { version = '', license = 'licence not stated' } = shipped.get(path) ?? {};
  const folder = join(ROOT, path);
  const names = readdirSync(folder).filter((name) => LICENCE_FILE.test(name) && statSync(join(folder, name)).isFile());
  const texts = names.map((name) => readFileSync(join(folder, name), 'utf8').trim());
  return [`${'='.repeat(80)}\n${nameOf(path)} ${version} (${license})\n`, ...texts, ''].join('\n');
}

/** What npm knows of all packages of the lockfile, less those that are only for development. */
function printBom(): void {
  const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'];
  const bom = bomSchema.parse(
    JSON.parse(execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28 })),
  );
  const ids = new Set([...shipped].map(([path, { version }]) => `${nameOf(path)}@${version}`));
  const own = locked.get('')?.version ?? '';
  // npm names the program by its folder, and marks Swagger UI, whose files are shipped, as for development.
  const metadata = { ...bom.metadata, component: { ...bom.metadata.component, name: 'evalgate' } };
  const components = bom.components
    .filter((component) => ids.has(component['bom-ref']))
    .map(({ properties = [], ...component }) => {
      return { ...component, properties: properties.filter(({ name }) => name !== 'cdx:npm:package:development') };
    });
  const dependencies = bom.dependencies
    .filter(({ ref }) => ids.has(ref) || ref === `evalgate@${own}`)
    .map((entry) => ({ ...entry, dependsOn: entry.dependsOn.filter((id) => ids.has(id)) }));
  process.stdout.write(`${JSON.stringify({ ...bom, metadata, components, dependencies }, null, 2)}\n`);
}

/** Per family of dependencies, such as koa and its router: the size of the packages that no other family needs, as installed. */
function printSizes(): void {
  const reach = new Map<string, ReadonlySet<string>>();
  for (const name of Object.keys(locked.get('')?.dependencies ?? {})) {
    const family = /^@?([a-z]+)/.exec(name)?.[1] ?? name;
    reach.set(family, new Set([...(reach.get(family) ?? []), ...reachedFrom(`node_modules/${name}`)]));
  }
  for (const [family, paths] of reach) {
    const others = new Set([...reach].flatMap(([other, found]) => (other === family ? [] : [...found])));
    const alone = [...paths].filter((path) => !others.has(path));
    const kilobytes = alone.reduce((sum, path) => sum + sizeOf(join(ROOT, path)), 0) / 1000;
    process.stdout.write(`${family}\t${Math.round(kilobytes)} kB in ${alone.length} packages\n`);
  }
}

function reachedFrom(path: string, reached = new Set<string>()): ReadonlySet<string> {
  if (reached.has(path)) return reached;
  reached.add(path);
  for (const name of Object.keys(locked.get(path)?.dependencies ?? {})) {
    const nested = `${path}/node_modules/${name}`;
    reachedFrom(locked.has(nested) ? nested : `node_modules/${name}`, reached);
  }
  return reached;
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules')
    .map((entry) => join(folder, entry.name))
    .reduce((sum, path) => sum + (statSync(path).isDirectory() ? sizeOf(path) : statSync(path).size), 0);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

function readJson(name: string): unknown {
  return JSON.parse(readFileSync(join(ROOT, name), 'utf8'));
}
