/** The gateway's pod as the manifests make it: what it is given, and what it asks for. */
import { z } from 'zod';
import { readText } from './files.ts';
import type { Manifest, Placed } from './manifests.ts';

const probeSchema = z.looseObject({
  httpGet: z.strictObject({ path: z.string(), port: z.string() }),
  periodSeconds: z.number(),
  failureThreshold: z.number(),
});
const envSchema = z.strictObject({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z.strictObject({ fieldRef: z.strictObject({ fieldPath: z.string() }) }).optional(),
});
const volumeSchema = z.looseObject({
  name: z.string(),
  configMap: z.strictObject({ name: z.string() }).optional(),
  secret: z
    .looseObject({ secretName: z.string(), items: z.array(z.strictObject({ key: z.string(), path: z.string() })) })
    .optional(),
});
const containerSchema = z.looseObject({
  image: z.string(),
  ports: z.array(z.strictObject({ name: z.string(), containerPort: z.number() })),
  env: z.array(envSchema),
  envFrom: z.array(z.strictObject({ configMapRef: z.strictObject({ name: z.string() }) })),
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })),
  resources: z.strictObject({
    requests: z.record(z.string(), z.string()),
    limits: z.record(z.string(), z.string()),
  }),
  startupProbe: probeSchema,
  readinessProbe: probeSchema,
  livenessProbe: probeSchema,
  lifecycle: z.strictObject({ preStop: z.strictObject({ sleep: z.strictObject({ seconds: z.number() }) }) }),
  securityContext: z.looseObject({}),
});
const podSchema = z.looseObject({
  serviceAccountName: z.string(),
  terminationGracePeriodSeconds: z.number(),
  securityContext: z.looseObject({ runAsUser: z.number(), runAsGroup: z.number() }),
  containers: z.tuple([containerSchema]),
  volumes: z.array(volumeSchema),
});
const deploymentSchema = z.looseObject({
  spec: z.looseObject({
    template: z.looseObject({
      metadata: z.looseObject({ labels: z.record(z.string(), z.string()) }),
      spec: podSchema,
    }),
  }),
});

export interface GatewayPod {
  readonly labels: Readonly<Record<string, string>>;
  readonly pod: z.infer<typeof podSchema>;
  readonly container: z.infer<typeof containerSchema>;
  readonly serviceAccount: string;
  readonly configMaps: readonly string[];
  /** The files of the secret, by where they are mounted. */
  readonly secretFiles: readonly string[];
}

/** One manifest of a kind and name. Throws where there is not exactly one. */
export function oneOf(placed: readonly Placed[], kind: string, name: string): Manifest {
  const found = placed.filter(({ manifest }) => manifest.kind === kind && manifest.metadata.name === name);
  const [only] = found;
  if (only === undefined || found.length > 1) throw new Error(`There are ${found.length} of ${kind} ${name}.`);
  return only.manifest;
}

export function gatewayOf(placed: readonly Placed[]): GatewayPod {
  const { template } = deploymentSchema.parse(oneOf(placed, 'Deployment', 'evalgate')).spec;
  const pod = template.spec;
  const [container] = pod.containers;
  const mountOf = (volume: string): string =>
    container.volumeMounts.find(({ name }) => name === volume)?.mountPath ?? '';
  return {
    labels: template.metadata.labels,
    pod,
    container,
    serviceAccount: pod.serviceAccountName,
    configMaps: [
      ...container.envFrom.map(({ configMapRef }) => configMapRef.name),
      ...pod.volumes.flatMap(({ configMap }) => (configMap === undefined ? [] : [configMap.name])),
    ],
    secretFiles: pod.volumes.flatMap(({ name, secret }) =>
      (secret?.items ?? []).map(({ path }) => `${mountOf(name)}/${path}`),
    ),
  };
}

const POD_IP = '10.0.0.7';

/** The environment that the rendered manifests give the gateway. */
export function environmentOf(rendered: readonly Placed[]): Readonly<Record<string, string>> {
  const { container } = gatewayOf(rendered);
  const env: Record<string, string> = {};
  for (const { configMapRef } of container.envFrom) {
    Object.assign(env, dataOf(oneOf(rendered, 'ConfigMap', configMapRef.name)));
  }
  // As Kubernetes does it: each may refer to those that stand before it.
  for (const { name, value, valueFrom } of container.env) {
    const given = valueFrom === undefined ? (value ?? '') : POD_IP;
    env[name] = given.replaceAll(/\$\((\w+)\)/g, (whole, other: string) => env[other] ?? whole);
  }
  return env;
}

/** Reads what is mounted: the configuration of the rendered manifests, or of `deploy/`, and made-up secrets. */
export function readFileOf(rendered: readonly Placed[]): (path: string) => string {
  const secrets: Readonly<Record<string, string>> = {
    'admin-token': 'ops=one,prometheus=two',
    'upstream-token': 'three',
    'redis-url': 'redis://redis-state:6379',
    'redis-cache-url': 'redis://redis-cache:6379',
  };
  const configs = rendered.flatMap(({ manifest }) => (manifest.kind === 'ConfigMap' ? [dataOf(manifest)] : []));
  const config = configs.map((data) => data['evalgate.yaml']).find((text) => text !== undefined);
  const files: Readonly<Record<string, string>> = {
    '/etc/evalgate/evalgate.yaml': config ?? readText('deploy/kubernetes/base/evalgate.yaml'),
    ...Object.fromEntries(Object.entries(secrets).map(([name, text]) => [`/run/secrets/evalgate/${name}`, text])),
  };
  return (path) => {
    const text = files[path];
    if (text === undefined) throw new Error(`ENOENT: ${path}`);
    return text;
  };
}

function dataOf(manifest: Manifest): Readonly<Record<string, string>> {
  return z.looseObject({ data: z.record(z.string(), z.string()) }).parse(manifest).data;
}
