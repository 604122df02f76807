/** The files in deploy use only names that the gateway has: metrics, settings, commands, addresses. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import packageJson from '../../package.json' with { type: 'json' };
import { ERROR_CODES } from '../../src/http/problem.ts';
import { ADMIN_GRACE_MS, IN_FLIGHT_GRACE_MS, TRACES_GRACE_MS } from '../../src/server/server.ts';
import { runCli } from '../support/cli.ts';
import { whyNoCompose } from '../support/compose-stack.ts';
import { filesBelow, parseYaml, queriesOf, readDashboard, readRules, readText, ROOT } from '../support/deploy-files.ts';
import { startTestGateway } from '../support/gateway.ts';
import { programOnPath } from '../support/process.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';

const rules = readRules();
const alerts = rules.flatMap(({ alert, ...rest }) => (alert === undefined ? [] : [{ ...rest, name: alert }]));
const dashboard = readDashboard();
const runbook = readText('docs/runbook.md');

/** Names and labels of all metrics: of the gateway as public-names holds them against a real one, and of Prometheus itself. */
function knownMetrics(): ReadonlyMap<string, readonly string[]> {
  const pinned = readText('test/contract/public-names/pinned/metrics.txt').matchAll(/^(\w+) (\w+)(?: \{(.*)\})?$/gm);
  const known = new Map([...pinned].map(([, name = '', , labels = '']) => [name, labels.split(', ')] as const));
  for (const { record, expr } of rules) {
    if (record !== undefined)
      known.set(
        record,
        [...expr.matchAll(/\bby \(([a-z]+)\)/g)].map(([, label = '']) => label),
      );
  }
  known.set('up', []).set('ALERTS', ['alertname', 'alertstate']);
  // These come from kube-state-metrics.
  for (const name of ['kube_cronjob_status_last_successful_time', 'kube_cronjob_created']) {
    known.set(name, ['namespace', 'cronjob']);
  }
  return known;
}

const known = knownMetrics();
/** Prometheus puts them on whatever it scrapes; buckets have their bound. */
const EVERYWHERE = ['job', 'instance', 'le'];

/** The parts of a query that do not exist: a metric, or a label of a metric. */
function unknownIn(query: string): readonly string[] {
  const expr = query.replaceAll(/\[[^\]]*\]/g, '');
  const named = [
    ...expr.matchAll(
      /\b((?:evalgate|nodejs|process|kube)_[a-z0-9_:]+|evalgate:[a-z0-9_:]+|up|ALERTS)\b(?!\()(?:\{([^}]*)\})?/g,
    ),
  ];
  const selectors = named.flatMap(([, name = '', narrowed = '']) => {
    const labels = labelsOf(name);
    if (labels === undefined) return [`there is no ${name}`];
    const wanted = [...narrowed.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label);
    return wanted.filter((label) => !labels.includes(label)).map((label) => `${name} has no ${label}`);
  });
  // All labels that are grouped by belong to some metric of the query.
  const all = named.flatMap(([, name = '']) => labelsOf(name) ?? []);
  const grouped = [...expr.matchAll(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([a-z_, ]*)\)/g)]
    .flatMap(([, labels = '']) => labels.split(/, */))
    .filter((label) => label !== '' && !all.includes(label));
  return [...selectors, ...grouped.map((label) => `no metric here has ${label}`)];
}

function labelsOf(name: string): readonly string[] | undefined {
  const own = known.get(name) ?? known.get(name.replace(/_(?:bucket|sum|count)$/, ''));
  return own === undefined ? undefined : [...own, ...EVERYWHERE];
}

describe('queries name metrics and labels that a gateway has', () => {
  test('of the rules, the dashboard and the runbook', () => {
    const panels = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    const marks = dashboard.annotations.list.flatMap(({ expr }) => (expr === undefined ? [] : [expr]));
    const chosen = dashboard.templating.list.map(({ query }) => query);
    const ofRules = rules.map(({ expr }) => expr);
    const ofRunbook = queriesOf('docs/runbook.md');
    for (const queries of [panels, ofRules, ofRunbook]) expect(queries.length).toBeGreaterThan(25);
    for (const query of [...panels, ...marks, ...chosen, ...ofRules, ...ofRunbook]) {
      expect([query, unknownIn(query)]).toEqual([query, []]);
    }
  });

  test('an unknown name is found', () => {
    expect(unknownIn('rate(evalgate_requests_total[5m])')).toEqual(['there is no evalgate_requests_total']);
    expect(unknownIn('evalgate_redis_up{rule="state"}')).toEqual(['evalgate_redis_up has no rule']);
    expect(unknownIn('sum by (status) (evalgate_redis_up)')).toEqual(['no metric here has status']);
  });

  test('the dashboard shows counters as rates or increases, of the gateways that are chosen', () => {
    const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    expect(queries.filter((expr) => /_total\{[^}]*\}(?!\[)/.test(expr))).toEqual([]);
    expect(queries.filter((expr) => !/job=~"\$job", ?instance=~"\$instance"/.test(expr))).toEqual([]);
  });
});

describe('alerts', () => {
  test('each has a severity, a summary that is one sentence, and a section of the runbook with its five parts', () => {
    const sections = new Map(runbook.split(/^## /m).map((section) => [section.split('\n')[0] ?? '', section]));
    const parts = ['Meaning.', 'Impact.', 'Diagnosis.', 'Mitigation.', 'Escalation.'];
    for (const { name, labels, annotations } of alerts) {
      expect([name, labels?.['severity']]).toEqual([name, expect.stringMatching(/^(?:critical|warning|info)$/)]);
      expect(annotations?.['summary']).toMatch(/^[A-Z].*\.$/);
      expect(annotations?.['runbook_url']).toBe(`https://docs.example.com/evalgate/runbook.md#${name.toLowerCase()}`);
      const section = sections.get(name) ?? '';
      expect([name, parts.filter((part) => !section.includes(`**${part}**`))]).toEqual([name, []]);
    }
    const described = [...sections.keys()].filter((title) => title.startsWith('Evalgate'));
    expect(described.toSorted()).toEqual(alerts.map(({ name }) => name).toSorted());
  });

  test('Kubernetes gets the same rules', async () => {
    const file = readText('deploy/prometheus/alerts.yaml');
    const groups = file.slice(file.indexOf('groups:')).replaceAll(/^(?=.)/gm, '  ');
    const manifest = `# Written from deploy/prometheus/alerts.yaml by \`npx vitest run test/contract/deploy -u\`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: evalgate
  labels:
    app.kubernetes.io/name: evalgate
spec:
${groups}`;
    const path = join(ROOT, 'deploy/kubernetes/components/monitoring/prometheus-rule.yaml');
    await expect(manifest).toMatchFileSnapshot(path);
  });

  // Without promtool the names have been looked at above, and nothing else.
  const promtool = programOnPath('promtool');
  test.skipIf(promtool === null)(
    'promtool accepts the rules, and each case fires or not as it says (skipped if promtool is not on the PATH)',
    async () => {
      const cwd = join(ROOT, 'deploy/prometheus');
      const run = (...args: readonly string[]) => promisify(execFile)(promtool ?? '', args, { cwd });
      expect((await run('check', 'rules', '--lint=all', '--lint-fatal', 'alerts.yaml')).stdout).toContain('SUCCESS');
      expect((await run('check', 'config', '--syntax-only', 'prometheus.yml')).stdout).toContain('SUCCESS');
      await run('test', 'rules', 'alerts.test.yaml', 'alerts.long.test.yaml');
    },
    120_000,
  );
});

/** A command as it is written: quotes hold words together, and a remark ends it. */
const wordsOf = (line: string): readonly string[] =>
  [...line.replace(/\s{2,}#.*$/, '').matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );

/** The program's message about a command that it refuses; null if it accepts it. Nothing listens at the address. */
async function refusalOf(command: string): Promise<string | null> {
  const { status, stderr } = await runCli(wordsOf(command), { env: { ADMIN_PORT: '1' } });
  return status === 2 && !stderr.includes('Commands:') ? stderr : null;
}

describe('the runbook', () => {
  test('names commands that the program takes, and so does the page on Kubernetes', async () => {
    const pages = `${runbook}\n${readText('deploy/kubernetes/README.md')}`;
    const inBlocks = pages.matchAll(/^(?:npx |.*(?: -- | exec gateway-1 ))?evalgate ([a-z][^`\n]*)$/gm);
    const inText = pages.matchAll(/`evalgate ([a-z][^`]*)`/g);
    const commands = [...inBlocks, ...inText].map(([, command = '']) =>
      command
        .replaceAll('\n', ' ')
        .replace(/ [<>] \S+$/, '')
        .replace('...', 'all')
        .replace('UUID', '00000000-0000-4000-8000-000000000000'),
    );
    expect(commands.length).toBeGreaterThan(35);
    for (const command of new Set(commands)) expect([command, await refusalOf(command)]).toEqual([command, null]);
    expect(await refusalOf('cache ttl set lists --fresh 2m')).toMatch(/lists/);
    expect(await refusalOf('cache purge --tag all --hard')).toMatch(/--hard/);
  });

  test('names paths of the admin listener that answer, and sections that are there', async () => {
    const paths = new Set([...runbook.matchAll(/\$ADMIN(\/[a-z/]*[a-z])/g)].map(([, path = '']) => path));
    expect(paths.size).toBeGreaterThan(2);
    const gateway = await startTestGateway();
    for (const path of paths) expect([path, (await gateway.admin('GET', path)).status]).toEqual([path, 200]);
    await gateway.close();
    const sections = [...runbook.matchAll(/^## (.*)$/gm)].map(([, title = '']) => `#${title.toLowerCase()}`);
    const links = [...runbook.matchAll(/\]\((#[^)]*)\)/g)].map(([, link = '']) => link);
    expect(links.filter((link) => !sections.includes(link))).toEqual([]);
  });
});

/** The output of a program in the project's folder. Rejects with what it says if it fails. */
async function outputOf(program: string | null, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, ADMIN_TOKEN: 'any' };
  return (await promisify(execFile)(program ?? '', args, { cwd: ROOT, env })).stdout;
}

const compose = (await whyNoCompose()) === null ? programOnPath('docker') : null;

/** The end of a rule of a NetworkPolicy: the admin port, of or for that component only. */
const portOf = (component: string): string =>
  `"app.kubernetes.io/component":"${component}"}}}],"ports":[{"protocol":"TCP","port":"admin"}]`;

describe('manifests', () => {
  const files = ['docker-compose.yml', ...filesBelow('deploy', '.yaml', '.yml')];

  test.each(files)('%s is sound YAML', (file) => {
    expect(parseYaml(readText(file)).length).toBeGreaterThan(0);
  });

  const [kubectl, kubeconform] = ['kubectl', 'kubeconform'].map(programOnPath);
  const overlays = ['overlays/sample', 'overlays/production', 'components/monitoring', 'components/backup'];
  test.skipIf(!kubectl).each(overlays)('kubectl builds %s (skipped if kubectl is not on the PATH)', async (folder) => {
    const built = await outputOf(kubectl ?? null, 'kustomize', `deploy/kubernetes/${folder}`);
    const kinds = parseYaml(built).map((one) => z.object({ kind: z.string() }).parse(one).kind);
    // Not every cluster has the Prometheus operator.
    expect(kinds.includes('PrometheusRule')).toBe(folder === 'components/monitoring');
    expect(built).not.toContain('evalgate-runbook');
  });

  test.skipIf(!kubeconform)('kubeconform takes the manifests (skipped where it is not on the PATH)', async () => {
    const manifests = filesBelow('deploy/kubernetes', '.yaml').filter((file) => !file.endsWith('kustomization.yaml'));
    const own = manifests.filter((file) => !file.endsWith('base/evalgate.yaml'));
    expect(await outputOf(kubeconform ?? null, '-strict', '-ignore-missing-schemas', ...own)).toBe('');
  });

  test.skipIf(compose === null)('Compose takes docker-compose.yml (skipped without Compose)', async () => {
    expect(await outputOf(compose, 'compose', 'config', '--quiet')).toBe('');
  });

  test('gateways are given variables that they read', () => {
    const pinned = readText('test/contract/public-names/pinned/environment.txt');
    // The commands of a job read two more.
    const ofCommands = ['EVALGATE_ADMIN_URL', 'EVALGATE_OPERATOR'];
    const ours = new Set([...[...pinned.matchAll(/^([A-Z_]+)/gm)].map(([, name]) => name), ...ofCommands]);
    const schema = z.object({
      services: z.record(z.string(), z.looseObject({ environment: z.record(z.string(), z.unknown()).optional() })),
    });
    const { services } = schema.parse(parseYaml(readText('docker-compose.yml'))[0]);
    const composed = Object.entries(services)
      .filter(([name]) => name.startsWith('gateway') || name === 'sample-store')
      .flatMap(([, { environment = {} }]) => Object.keys(environment));
    const manifests = filesBelow('deploy/kubernetes', '.yaml').map(readText).join('\n');
    const listed = [...manifests.matchAll(/- name: ([A-Z][A-Z_]+)$/gm)].map(([, name = '']) => name);
    const literals = [...manifests.matchAll(/^ +- ([A-Z][A-Z_]+)=/gm)].map(([, name = '']) => name);
    for (const names of [composed, listed, literals]) expect(names.length).toBeGreaterThan(2);
    // A variable used in the value of another belongs to the manifest only.
    const isOwn = (name: string): boolean => manifests.includes(`$(${name})`);
    expect([...composed, ...listed, ...literals].filter((name) => !ours.has(name) && !isOwn(name))).toEqual([]);
  });

  const documents = filesBelow('deploy/kubernetes', '.yaml').flatMap((file) =>
    parseYaml(readText(file)).map((document) => ({ file, text: JSON.stringify(document) })),
  );

  test('have no address of IPv4, and the image has none', () => {
    // Networks, which have a prefix length, are an installation's own.
    const address = /\b\d{1,3}(?:\.\d{1,3}){3}\b(?!\/)/;
    expect(documents.length).toBeGreaterThan(15);
    expect(documents.filter(({ text }) => address.test(text)).map(({ file }) => file)).toEqual([]);
    expect(readText('Dockerfile')).not.toMatch(address);
  });

  test('fix no user but that of the Redis of a trial, which components/openshift removes', () => {
    const fixed = documents.filter(({ text }) => /"runAs(?:User|Group)":/.test(text)).map(({ file }) => file);
    expect(new Set(fixed)).toEqual(new Set(['deploy/kubernetes/overlays/sample/redis.yaml']));
  });

  test('probes bear a node that is busy for five seconds', () => {
    const timeouts = [...readText('deploy/kubernetes/base/deployment.yaml').matchAll(/timeoutSeconds: (\d+)/g)];
    expect(timeouts.map(([, seconds]) => Number(seconds) > 5)).toEqual([true, true, true]);
    const [, seconds] = /HEALTHCHECK .*--timeout=(\d+)s/.exec(readText('Dockerfile')) ?? [];
    expect(Number(seconds)).toBeGreaterThan(10);
  });

  test('DNS is allowed on the port of OpenShift too', () => {
    const policies = documents.filter(({ text }) => text.includes('"port":53}'));
    expect(policies).toHaveLength(2);
    for (const { text } of policies) expect(text.match(/"port":5353}/g)).toHaveLength(2);
  });

  test('the backup reaches the admin listener, and nothing but that', () => {
    const policies = parseYaml(readText('deploy/kubernetes/components/backup/network-policy.yaml'));
    const [job = '', gateways = ''] = policies.map((policy) => JSON.stringify(policy));
    expect(job).toContain(portOf('gateway'));
    expect(gateways).toContain(portOf('backup'));
    const gatewaysName = 'evalgate-admin';
    expect(readText('deploy/kubernetes/components/backup/cron-job.yaml')).toContain(`http://${gatewaysName}:8081`);
    expect(readText('deploy/kubernetes/base/deployment.yaml')).toContain(`$(POD_IP),${gatewaysName}\n`);
  });

  test('a pod is stopped within its grace, and the README says the same', () => {
    const manifest = readText('deploy/kubernetes/base/deployment.yaml');
    const settings = readText('deploy/kubernetes/base/kustomization.yaml');
    const [, preStop] = /preStop:\s+sleep:\s+seconds: (\d+)/.exec(manifest) ?? [];
    const [, drain] = /DRAIN_DELAY=(\d+)s/.exec(settings) ?? [];
    const [, grace] = /terminationGracePeriodSeconds: (\d+)/.exec(manifest) ?? [];
    // Each listener also takes up to two seconds to close what idles.
    const [requests, admin] = [IN_FLIGHT_GRACE_MS, ADMIN_GRACE_MS].map((ms) => ms / 1000 + 2);
    const spans = TRACES_GRACE_MS / 1000;
    const total = Number(preStop) + Number(drain) + Number(requests) + Number(admin) + spans;
    expect(manifest).toContain(
      `# preStop ${preStop} s + DRAIN_DELAY ${drain} s + ${requests} s for requests in flight + ${admin} s for the admin listener + ${spans} s for spans = ${total} s.`,
    );
    const readme = readText('deploy/kubernetes/README.md').replaceAll(/\s+/g, ' ');
    for (const text of [
      `For ${preStop} s (\`preStop\`)`,
      `\`DRAIN_DELAY\` (${drain} s)`,
      `up to ${requests} s for requests in flight, ${admin} s for the admin listener and ${spans} s for spans. That is ${total} s of the ${grace} s`,
    ]) {
      expect(readme).toContain(text);
    }
    expect(total).toBeLessThan(Number(grace));
  });

  test('the file of settings in the pod is one that a gateway takes', async () => {
    const env = { CONFIG_FILE: join(ROOT, 'deploy/kubernetes/base/evalgate.yaml') };
    expect((await runCli(['openapi'], { env })).status).toBe(0);
  });
});

describe('the image', () => {
  const dockerfile = readText('Dockerfile');
  const [build = '', final = ''] = dockerfile.split(/^FROM .*$/m).slice(1);
  const packed = [...packageJson.files.map((name) => name.split('/')[0]), 'package.json', 'README.md', 'LICENSE'];

  test('is built from files that are there, all that .dockerignore lets through and nothing else', () => {
    const copied = [...build.matchAll(/^COPY (.*) \S+$/gm)].flatMap(([, names = '']) => names.split(' '));
    const [rest, ...exceptions] = readText('.dockerignore')
      .split('\n')
      .filter((line) => /^[*!]/.test(line));
    expect(rest).toBe('*');
    const names = exceptions.map((line) => line.slice(1));
    expect(names.filter((name) => !existsSync(join(ROOT, name)))).toEqual([]);
    expect(new Set(copied)).toEqual(new Set(names.map((name) => name.replace('/shipped.ts', ''))));
  });

  test('ships what the package holds, its packages and their compiled code, and no npm', () => {
    const copies = [...final.matchAll(/^COPY --from=build (.*) \S+$/gm)];
    const shipped = copies.flatMap(([, names = '']) => names.split(' '));
    const wanted = [...new Set(packed), 'node_modules', '.compile-cache'];
    expect(shipped.toSorted()).toEqual(wanted.map((name) => `/app/${name}`).toSorted());
    expect(final.match(/^COPY /gm)).toHaveLength(copies.length);
    expect(build).toMatch(/^RUN npm pack .*tar -xzf evalgate-\*\.tgz -C \/app /m);
    expect(build).toMatch(/^RUN npm ci --omit=dev --ignore-scripts /m);
    expect(final).toMatch(/rm -rf \/usr\/local\/lib\/node_modules /);
    expect(final).not.toMatch(/\bnpm (?:ci|install|run)\b/);
  });

  test('names its version and its base, which its digest fixes in both stages', () => {
    expect(dockerfile.match(/^FROM .*$/gm)).toEqual(['FROM ${BASE} AS build', 'FROM ${BASE}']);
    expect(final).toContain(`\nARG VERSION=${packageJson.version}\nARG REVISION=\n`);
    for (const [label, value] of Object.entries({
      title: 'evalgate',
      version: '${VERSION}',
      revision: '${REVISION}',
      licenses: packageJson.license,
      'base.name': '${NODE_IMAGE}',
      'base.digest': '${NODE_DIGEST}',
    })) {
      expect(final).toContain(`org.opencontainers.image.${label}="${value}"`);
    }
  });

  test('starts, checks and stops the program that the package has as its command', () => {
    const command = ['node', `/app/${packageJson.bin.evalgate}`];
    expect(final).toContain(`\nENTRYPOINT ${array(command)}\nCMD ${array(['serve'])}\n`);
    expect(final).toContain(`\n  CMD ${array([...command, 'health'])}\n`);
    expect(final).toContain('\nSTOPSIGNAL SIGTERM\n');
    expect(final).toContain(`\nRUN ln -s /app/${packageJson.bin.evalgate} /usr/local/bin/evalgate\n`);
  });
});

/** As a Dockerfile has it. */
function array(words: readonly string[]): string {
  return `[${words.map((word) => `"${word}"`).join(', ')}]`;
}

describe('the balancer', () => {
  test('lets the longest response headers through', async () => {
    const [, kilobytes] = /proxy-buffer-size: (\d+)k/.exec(
      readText('deploy/kubernetes/overlays/production/ingress.yaml'),
    ) ?? [null, '4'];
    const gateway = await startTestGateway();
    try {
      const search = '\u{1d4b3}'.repeat(200);
      for (let i = 0; i < 5; i += 1) {
        const record = anEvaluation({ _id: `ev_${i}`, workspaceId: WORKSPACE_A, title: search });
        gateway.store.put({ evaluations: [record] });
      }
      const key = await gateway.issueKey({ workspaceIds: [WORKSPACE_A] });
      const { status, headers } = await gateway.get(
        `/v2/calls?pageSize=1&page=3&search=${encodeURIComponent(search)}`,
        { key },
      );
      expect(status).toBe(200);
      const bytes = Object.entries(headers).reduce(
        (sum, [name, value]) => sum + `${name}: ${String(value)}\r\n`.length,
        0,
      );
      expect(bytes).toBeGreaterThan(10_000);
      expect(bytes).toBeLessThan(Number(kilobytes) * 1024);
    } finally {
      await gateway.close();
    }
  });

  test('A4: the answers that the balancer makes by itself have a code of the API', () => {
    const answers = readText('deploy/compose/haproxy/haproxy.cfg').match(/^ +http-error status .*$/gm) ?? [];
    expect(answers).toHaveLength(3);
    const codes = Object.entries(ERROR_CODES).flatMap(([code, { status }]) => (status === 500 ? [code] : []));
    for (const answer of answers) expect(codes).toContain(/ hdr X-Error-Code (\w+)/.exec(answer)?.[1]);
  });
});
