import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { loadConfig } from '../../../src/config/load.ts';
import { parseDuration } from '../../../src/duration.ts';
import { listSettings } from '../../../src/config/settings.ts';
import { ADMIN_GRACE_MS, IN_FLIGHT_GRACE_MS } from '../../../src/server.ts';
import { parseYaml, readText } from './files.ts';

const PROMETHEUS_TOKEN = 'b'.repeat(24);
const FROM_ENV_FILE = {
  ADMIN_TOKEN: `ops=${'a'.repeat(24)},prometheus=${PROMETHEUS_TOKEN}`,
  METRICS_TOKEN: PROMETHEUS_TOKEN,
};

const networksSchema = z.union([
  z.array(z.string()),
  z.record(z.string(), z.looseObject({ ipv4_address: z.string() })),
]);
const serviceSchema = z.looseObject({
  image: z.string(),
  environment: z.record(z.string(), z.string()).default({}),
  networks: networksSchema.default([]),
  ports: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  command: z.array(z.string()).default([]),
  profiles: z.array(z.string()).default([]),
  configs: z.array(z.strictObject({ source: z.string(), target: z.string() })).default([]),
  read_only: z.boolean().default(false),
  cap_drop: z.array(z.string()).default([]),
  stop_grace_period: z.string().optional(),
});
const composeSchema = z.looseObject({
  services: z.record(z.string(), serviceSchema),
  configs: z.record(z.string(), z.strictObject({ content: z.string() })),
  networks: z.record(
    z.string(),
    z.strictObject({ ipam: z.strictObject({ config: z.tuple([z.strictObject({ subnet: z.string() })]) }) }),
  ),
});

const { services, configs, networks } = composeSchema.parse(interpolated(FROM_ENV_FILE));
const balancer = serviceOf('balancer');
const gateways = Object.entries(services).filter(([name]) => name.startsWith('gateway'));
const haproxy = readText('deploy/compose/haproxy/haproxy.cfg');

/** As Compose does it: `${NAME:?why}`, `${NAME:-otherwise}`, the latter with another one within. */
function interpolated(env: Readonly<Record<string, string>>): unknown {
  const fill = (text: string): string =>
    text
      .replaceAll(/\$\{(\w+)\}/g, (_, name: string) => env[name] ?? '')
      .replaceAll(/\$\{(\w+):([?-])([^}]*)\}/g, (_, name: string, kind: string, rest: string) => {
        const value = env[name] ?? '';
        if (value === '' && kind === '?') throw new Error(rest);
        return value === '' ? rest : value;
      });
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') return fill(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, walk(inner)]));
  };
  const [document] = parseYaml(readText('docker-compose.yml'));
  return walk(merged(document));
}

/** `<<` is of YAML 1.1, which Compose reads. */
function merged(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(merged);
  if (typeof value !== 'object' || value === null) return value;
  const { '<<': base, ...own } = z.record(z.string(), z.unknown()).parse(value);
  const inner = Object.fromEntries(Object.entries(own).map(([name, one]) => [name, merged(one)]));
  return base === undefined ? inner : { ...z.record(z.string(), z.unknown()).parse(merged(base)), ...inner };
}

function serviceOf(name: string): z.infer<typeof serviceSchema> {
  const service = services[name];
  if (service === undefined) throw new Error(`There is no service ${name}.`);
  return service;
}

/** The values of a directive that stands once. */
function directive(name: string): string {
  const found = [...haproxy.matchAll(new RegExp(`^ +${name} (.+)$`, 'gm'))].map(([, value = '']) => value);
  expect(found).toHaveLength(1);
  return found[0] ?? '';
}

test('without a token of ADMIN_TOKEN nothing starts, and it is said what to do', () => {
  expect(() => interpolated({})).toThrow('write ADMIN_TOKEN= and a token of your own into the file .env');
});

test('every variable that a gateway is given is one that it reads, and is allowed', () => {
  const read = listSettings().flatMap(({ env }) => (env === null ? [] : [env]));
  expect(gateways.map(([name]) => name)).toEqual(['gateway-1', 'gateway-2']);
  for (const [name, { environment }] of gateways) {
    expect(Object.keys(environment).filter((variable) => !read.includes(variable))).toEqual([]);
    const { config, warnings } = loadConfig({ env: environment });
    expect(warnings).toEqual([]);
    expect(config.admin.allowedHosts).toEqual([name]);
    expect(config.admin.tokens.map(({ name: holder }) => holder)).toEqual(['ops', 'prometheus']);
  }
});

test('the balancer is the one proxy whose word on the client is believed, and takes no word of clients', () => {
  const address = z.strictObject({ front: z.strictObject({ ipv4_address: z.string() }) }).parse(balancer.networks);
  const [subnet] = networks['front']?.ipam.config ?? [];
  expect(subnet?.subnet).toBe('10.213.74.0/24');
  for (const [, { environment }] of gateways) {
    expect(environment['TRUSTED_PROXIES']).toBe(address.front.ipv4_address);
  }
  expect(haproxy).toContain('http-request set-header X-Forwarded-For %[src]\n');
});

test('only the balancer and loopback ports lead to a gateway, and no Redis can be reached from outside', () => {
  const published = Object.entries(services).flatMap(([name, { ports }]) => ports.map((port) => `${name} ${port}`));
  expect(published).toEqual([
    'balancer 127.0.0.1:8080:8080',
    'gateway-1 127.0.0.1:8081:8081',
    'gateway-2 127.0.0.1:8082:8081',
    'prometheus 127.0.0.1:9090:9090',
    'grafana 127.0.0.1:3000:3000',
  ]);
});

test('the balancer asks both gateways whether they are ready, and has seen that one is not before it stops accepting', () => {
  const { config } = loadConfig({ env: {} });
  const names = [...haproxy.matchAll(/^ {2}server (\S+) (\S+):(\d+)$/gm)].map(([, name, host, port]) => [
    name,
    host,
    port,
  ]);
  const both = gateways.map(([name]) => [name, name, String(config.server.port)]);
  expect(names).toEqual([...both, ...both]);
  expect(directive('http-check send')).toContain('uri /readyz');
  const [, port, inter, fast, fall] =
    /check port (\d+) inter (\d+)ms fastinter (\d+)ms downinter \d+ms fall (\d+)/.exec(haproxy) ?? [];
  expect(Number(port)).toBe(config.admin.port);
  const noticedMs = Number(inter) + Number(fast) * (Number(fall) - 1);
  expect(noticedMs).toBeLessThan(config.server.drainDelayMs / 2);
});

test('a request is sent again only where nothing has come back, and only one that reads', () => {
  expect(directive('retry-on').split(' ')).toEqual(['conn-failure', 'empty-response', 'response-timeout']);
  expect(directive('http-request disable-l7-retry')).toBe('unless { method GET HEAD }');
});

test('the balancer waits longer than a gateway may take, which has longer to end than it needs', () => {
  const { config } = loadConfig({ env: {} });
  expect(parseDuration(directive('timeout server'))).toBeGreaterThan(config.upstream.timeoutMs);
  for (const [, { stop_grace_period: grace = '', environment }] of gateways) {
    const drainMs = loadConfig({ env: environment }).config.server.drainDelayMs;
    expect(parseDuration(grace)).toBeGreaterThan(drainMs + IN_FLIGHT_GRACE_MS + ADMIN_GRACE_MS);
  }
});

test('gateways and balancer can write no file and have no capabilities', () => {
  for (const name of ['balancer', 'gateway-1', 'gateway-2', 'sample-store']) {
    expect([name, serviceOf(name).read_only, serviceOf(name).cap_drop]).toEqual([name, true, ['ALL']]);
  }
});

test('state is never evicted and on disk, the cache may be evicted and is not', () => {
  const state = serviceOf('redis').command.join(' ');
  expect(state).toContain('--maxmemory-policy noeviction');
  expect(state).toContain('--appendonly yes');
  const cache = serviceOf('redis-cache').command.join(' ');
  expect(cache).toContain('--maxmemory-policy allkeys-lru');
  expect(cache).toContain('--save  --appendonly no');
});

test('Prometheus finds its rules, the gateways and a token that they accept; Grafana the data source and the dashboard', () => {
  const { configs: mounted, volumes, profiles } = serviceOf('prometheus');
  const scrape = readText('deploy/prometheus/prometheus.yml');
  expect([profiles, volumes]).toEqual([
    ['prometheus'],
    ['./deploy/prometheus:/etc/prometheus:ro', 'prometheus-data:/prometheus'],
  ]);
  expect(scrape).toContain(`credentials_file: ${mounted[0]?.target}\n`);
  expect(configs[mounted[0]?.source ?? '']?.content).toBe(PROMETHEUS_TOKEN);
  for (const [name] of gateways) expect(scrape).toContain(`'${name}:8081'`);
  const grafana = serviceOf('grafana');
  expect(grafana.profiles).toEqual(['grafana']);
  expect(readText('deploy/grafana/provisioning/datasources/prometheus.yaml')).toContain(
    'url: http://prometheus:9090\n',
  );
  const folder = /path: (\S+)/.exec(readText('deploy/grafana/provisioning/dashboards/evalgate.yaml'))?.[1];
  expect(grafana.volumes).toContain(`./deploy/grafana/evalgate.json:${folder}/evalgate.json:ro`);
});

test('where there is one token, Prometheus has it too', () => {
  const { configs: single } = composeSchema.parse(interpolated({ ADMIN_TOKEN: 'c'.repeat(24) }));
  expect(single['metrics-token']?.content).toBe('c'.repeat(24));
});

/** With BuildKit and Compose there is nothing more to see here than what `docker compose config` takes. */
const hasCompose = await promisify(execFile)('docker', ['compose', 'version']).then(
  () => true,
  () => false,
);

test.skipIf(!hasCompose)(
  'Compose takes the file, with every profile (skipped where there is no docker compose)',
  async () => {
    const args = ['compose', '--env-file', '/dev/null', '--profile', '*', 'config', '--format', 'json'];
    const env = { ...process.env, ...FROM_ENV_FILE };
    const { stdout } = await promisify(execFile)('docker', args, { env });
    const taken = z.looseObject({ services: z.record(z.string(), z.unknown()) }).parse(JSON.parse(stdout));
    expect(Object.keys(taken.services).toSorted()).toEqual(Object.keys(services).toSorted());
  },
);
