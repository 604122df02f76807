import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { loadConfig } from '../../../src/config/load.ts';
import { programOnPath } from '../../support/programs.ts';
import { filesBelow, parseYaml, readText, ROOT } from './files.ts';
import { environmentOf, gatewayOf, readFileOf } from './gateway-pod.ts';
import { faultsOf, manifestsOf, type Placed, readManifests } from './manifests.ts';

const run = promisify(execFile);
const OVERLAYS = ['deploy/kubernetes/overlays/production', 'deploy/kubernetes/overlays/sample'] as const;

const kustomize = programOnPath('kustomize');
const kubectl = programOnPath('kubectl');
const cannotBuild = kustomize === null && kubectl === null;

/** An overlay as it is applied. Without either program none is built, and the files alone are looked at. */
async function build(overlay: string): Promise<readonly Placed[]> {
  const [tool, args] = kustomize === null ? [kubectl ?? '', ['kustomize']] : [kustomize, ['build']];
  const { stdout } = await run(tool, [...args, join(ROOT, overlay)], { maxBuffer: 10_000_000 });
  return manifestsOf(overlay, stdout);
}

const built = new Map<string, readonly Placed[]>();
beforeAll(async () => {
  if (cannotBuild) return;
  for (const overlay of OVERLAYS) built.set(overlay, await build(overlay));
});

test('every manifest, as it stands and as overlays make it, is as Kubernetes and the Prometheus operator have it', async () => {
  const all = [...readManifests(), ...[...built.values()].flat()];
  expect(all.length).toBeGreaterThan(cannotBuild ? 15 : 45);
  expect(await faultsOf(all)).toBe('');
}, 60_000);

test('a name that is none and a value that is none are found out', async () => {
  const [placed] = readManifests().filter(({ manifest }) => manifest.kind === 'PodDisruptionBudget');
  const faulty = (spec: object): Placed[] =>
    placed === undefined ? [] : [{ ...placed, manifest: { ...placed.manifest, spec } }];
  const faults = await faultsOf([...faulty({ maxUnavailabel: 1 }), ...faulty({ maxUnavailable: true })]);
  expect(faults).toMatch(/maxUnavailabel.* does not exist/);
  expect(faults).toMatch(/data\/spec\/maxUnavailable must be/);
}, 60_000);

test('every kustomization names what is there', () => {
  const schema = z.looseObject({
    resources: z.array(z.string()).default([]),
    components: z.array(z.string()).default([]),
    configMapGenerator: z.array(z.looseObject({ files: z.array(z.string()).default([]) })).default([]),
  });
  const missing = [...filesBelow('deploy', 'kustomization.yaml')].flatMap((file) => {
    const [document] = parseYaml(readText(file));
    const { resources, components, configMapGenerator } = schema.parse(document);
    const named = [...resources, ...components, ...configMapGenerator.flatMap(({ files }) => files)];
    return named.map((name) => join(dirname(file), name)).filter((path) => !existsSync(join(ROOT, path)));
  });
  expect(missing).toEqual([]);
});

test.skipIf(cannotBuild).each(OVERLAYS)(
  '%s names what is there and starts a gateway (skipped where neither kubectl nor kustomize is on the PATH)',
  (overlay) => {
    const rendered = built.get(overlay) ?? [];
    const gateway = gatewayOf(rendered);
    const names = (kind: string): string[] =>
      rendered.flatMap(({ manifest }) => (manifest.kind === kind ? [manifest.metadata.name] : []));
    expect(names('ConfigMap')).toEqual(expect.arrayContaining([...gateway.configMaps]));
    expect(names('ServiceAccount')).toContain(gateway.serviceAccount);
    const spaces = rendered.filter(({ manifest: { kind } }) => kind !== 'Namespace');
    expect(new Set(spaces.map(({ manifest }) => manifest.metadata.namespace))).toEqual(new Set(names('Namespace')));
    const { config, warnings } = loadConfig({ env: environmentOf(rendered), readFile: readFileOf(rendered) });
    expect(warnings).toEqual([]);
    expect(config.upstream.url).toMatch(/^https:\/\/store\.example\.com|^http:\/\/sample-store:9090/);
    expect(config.upstream.maxConnections).toBe(20);
  },
);
