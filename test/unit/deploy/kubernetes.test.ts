import { request } from 'node:http';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { loadConfig } from '../../../src/config/load.ts';
import { listSettings } from '../../../src/config/settings.ts';
import { ADMIN_GRACE_MS, IN_FLIGHT_GRACE_MS } from '../../../src/server.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { parseYaml, readText } from './files.ts';
import { environmentOf, gatewayOf, oneOf, readFileOf } from './gateway-pod.ts';
import { type Placed, readManifests } from './manifests.ts';

const manifests = [...readManifests().filter(({ place }) => !place.includes('/overlays/')), ...generated()];
const { pod, container, labels, secretFiles } = gatewayOf(manifests);
const env = environmentOf(manifests);
const { config, warnings } = loadConfig({ env, readFile: readFileOf(manifests) });

/** The config maps of the base, which kustomize makes. */
function generated(): readonly Placed[] {
  const schema = z.looseObject({
    configMapGenerator: z.array(z.looseObject({ name: z.string(), literals: z.array(z.string()).default([]) })),
  });
  const place = 'deploy/kubernetes/base/kustomization.yaml';
  const [document] = parseYaml(readText(place));
  return schema.parse(document).configMapGenerator.map(({ name, literals }) => {
    const data: Record<string, string> = {};
    for (const literal of literals) {
      const [key = '', ...value] = literal.split('=');
      data[key] = value.join('=');
    }
    return { place, manifest: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: {} }, data } };
  });
}

test('every variable that the pod is given is one that the gateway reads', () => {
  const read = listSettings().flatMap(({ env: name, secret }) =>
    name === null ? [] : secret ? [name, `${name}_FILE`] : [name],
  );
  // The file that holds settings, and what another variable is made of.
  const others = ['CONFIG_FILE', 'POD_IP'];
  expect(Object.keys(env).filter((name) => ![...read, ...others].includes(name))).toEqual([]);
  expect(warnings).toEqual([]);
});

test('secrets come from files, each of which is mounted and read, and none is in a manifest', () => {
  const read = Object.entries(env).flatMap(([name, path]) =>
    name.endsWith('_FILE') && name !== 'CONFIG_FILE' ? [path] : [],
  );
  expect(secretFiles.toSorted()).toEqual(read.toSorted());
  expect(manifests.filter(({ manifest }) => manifest.kind === 'Secret')).toEqual([]);
});

test('ports are those that the gateway listens on, and both listeners can be reached', () => {
  expect(container.ports).toEqual([
    { name: 'http', containerPort: config.server.port },
    { name: 'admin', containerPort: config.admin.port },
  ]);
  expect([config.server.host, config.admin.host]).toEqual(['0.0.0.0', '0.0.0.0']);
  const defaults = loadConfig({ env: {} }).config;
  expect([config.server.port, config.admin.port]).toEqual([defaults.server.port, defaults.admin.port]);
});

test('the admin listener answers probes, and Prometheus who has a token, under the address of the pod', async () => {
  const tokens = { ADMIN_TOKEN: 'ops=one,prometheus=two', ADMIN_ALLOWED_HOSTS: env['ADMIN_ALLOWED_HOSTS'] ?? '' };
  const gateway = await startTestGateway({ env: tokens });
  const host = `${env['POD_IP']}:${config.admin.port}`;
  const status = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<number> =>
    statusOf(gateway.adminUrl + path, { host, ...headers });
  try {
    const { startupProbe, readinessProbe, livenessProbe } = container;
    for (const { httpGet } of [startupProbe, readinessProbe, livenessProbe]) {
      expect(httpGet.port).toBe('admin');
      expect(await status(httpGet.path)).toBe(200);
    }
    expect(readinessProbe.httpGet.path).toBe('/readyz');
    expect(await status('/metrics', { authorization: 'Bearer two' })).toBe(200);
    expect(await status('/metrics')).toBe(401);
    expect(await status('/metrics', { authorization: 'Bearer two', host: '10.0.0.8:8081' })).toBe(403);
  } finally {
    await gateway.close();
  }
});

test('what the pod is given to end in is enough for all that it does then', () => {
  const preStopMs = container.lifecycle.preStop.sleep.seconds * 1000;
  const neededMs = preStopMs + config.server.drainDelayMs + IN_FLIGHT_GRACE_MS + ADMIN_GRACE_MS;
  expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(neededMs);
});

test('a pod that drains is seen not to be ready before it stops accepting', () => {
  const { periodSeconds, failureThreshold } = container.readinessProbe;
  expect(periodSeconds * (failureThreshold + 1) * 1000).toBeLessThan(config.server.drainDelayMs);
});

test('the pod is without privileges, as the user of the image, and cannot write to its root file system', () => {
  expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  const users = [...readText('Dockerfile').matchAll(/^USER (\S+)$/gm)].map(([, user]) => user);
  expect(users.at(-1)).toBe(`${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}`);
});

test('services, budget, policies and the spread over zones are about the gateway', () => {
  const selector = z.looseObject({ matchLabels: z.record(z.string(), z.string()) });
  const selectors = [
    z.looseObject({ spec: z.looseObject({ selector }) }).parse(oneOf(manifests, 'PodDisruptionBudget', 'evalgate')).spec
      .selector.matchLabels,
    ...['evalgate', 'evalgate-metrics'].map(
      (name) =>
        z.looseObject({ spec: z.looseObject({ podSelector: selector }) }).parse(oneOf(manifests, 'NetworkPolicy', name))
          .spec.podSelector.matchLabels,
    ),
    ...['evalgate', 'evalgate-admin'].map(
      (name) =>
        z
          .looseObject({ spec: z.looseObject({ selector: z.record(z.string(), z.string()) }) })
          .parse(oneOf(manifests, 'Service', name)).spec.selector,
    ),
    ...z
      .looseObject({ topologySpreadConstraints: z.array(z.looseObject({ labelSelector: selector })) })
      .parse(pod)
      .topologySpreadConstraints.map(({ labelSelector }) => labelSelector.matchLabels),
  ];
  expect(selectors).toHaveLength(7);
  for (const one of selectors) expect(one).toEqual(labels);
});

test('every port that another manifest names is one of the container', () => {
  const named = manifests.flatMap(({ manifest }) =>
    [...JSON.stringify(manifest).matchAll(/"(?:targetPort|port)":"(\w+)"/g)].map(([, port]) => port),
  );
  const ports = container.ports.map(({ name }) => name);
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((port) => !ports.includes(port ?? ''))).toEqual([]);
});

test('the autoscaler goes by the CPU that the gateway asks for, and nothing else sets how many there are', () => {
  const scaler = z
    .looseObject({
      spec: z.looseObject({
        scaleTargetRef: z.object({ kind: z.literal('Deployment'), name: z.literal('evalgate') }),
        metrics: z.tuple([
          z.object({ type: z.literal('Resource'), resource: z.looseObject({ name: z.literal('cpu') }) }),
        ]),
        maxReplicas: z.number(),
      }),
    })
    .parse(oneOf(manifests, 'HorizontalPodAutoscaler', 'evalgate'));
  expect(container.resources.requests['cpu']).toBe('1');
  expect(container.resources.limits).toEqual({ memory: container.resources.requests['memory'] });
  expect(oneOf(manifests, 'Deployment', 'evalgate')['spec']).not.toHaveProperty('replicas');
  // What the store has to bear, said in both places.
  expect(readText('deploy/kubernetes/base/evalgate.yaml')).toContain(`maxReplicas (${scaler.spec.maxReplicas})`);
});

test('the monitor scrapes the admin service under the job that rules go by, with a token of the secret', () => {
  const monitor = z.looseObject({
    spec: z.looseObject({
      jobLabel: z.string(),
      selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
      endpoints: z.tuple([
        z.looseObject({
          port: z.string(),
          path: z.literal('/metrics'),
          authorization: z.looseObject({ credentials: z.object({ name: z.string(), key: z.string() }) }),
        }),
      ]),
    }),
  });
  const { jobLabel, selector, endpoints } = monitor.parse(oneOf(manifests, 'ServiceMonitor', 'evalgate')).spec;
  const admin = oneOf(manifests, 'Service', 'evalgate-admin');
  expect(admin.metadata.labels).toEqual(selector.matchLabels);
  expect(admin.metadata.labels[jobLabel]).toBe('evalgate');
  const { ports } = z.looseObject({ ports: z.array(z.looseObject({ name: z.string() })) }).parse(admin['spec']);
  expect(ports.map(({ name }) => name)).toEqual([endpoints[0].port]);
  // Written by who makes the secret, as the page says.
  expect(readText('deploy/kubernetes/README.md')).toContain(
    `--from-literal=${endpoints[0].authorization.credentials.key}=`,
  );
});

test('the page that says how to make the secret has each of its keys', () => {
  const page = readText('deploy/kubernetes/README.md');
  const keys = secretFiles.map((path) => path.split('/').at(-1) ?? '');
  expect(keys).toHaveLength(4);
  expect(keys.filter((key) => !page.includes(`--from-literal=${key}=`))).toEqual([]);
});

test('the image is tagged with the version of the package', () => {
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(readText('package.json')));
  const tags = ['production', 'sample'].map((overlay) => {
    const schema = z.looseObject({ images: z.tuple([z.looseObject({ name: z.string(), newTag: z.string() })]) });
    return schema.parse(parseYaml(readText(`deploy/kubernetes/overlays/${overlay}/kustomization.yaml`))[0]).images[0];
  });
  expect(tags.map(({ name, newTag }) => [name, newTag])).toEqual([
    [container.image, version],
    [container.image, version],
  ]);
});

function statusOf(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers, agent: false }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject);
    sent.end();
  });
}
