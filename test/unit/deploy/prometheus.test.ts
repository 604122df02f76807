import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { loadConfig } from '../../../src/config/load.ts';
import { startRedis } from '../../support/redis.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { programOnPath } from '../../support/programs.ts';
import { DEPLOY, parseYaml, queriesOfPages, readDashboard, readRules, readText, withoutVariables } from './files.ts';
import { knownMetrics, type KnownMetrics } from './known-metrics.ts';
import { parseQuery } from './promql.ts';

const run = promisify(execFile);
const rules = readRules();
const alerts = rules.flatMap(({ alert, ...rest }) => (alert === undefined ? [] : [{ ...rest, name: alert }]));
const promtool = programOnPath('promtool');
const CASES = ['alerts.test.yaml', 'alerts.long.test.yaml'] as const;

let known: KnownMetrics;
beforeAll(async () => {
  known = await knownMetrics();
});

test('every rule is PromQL', () => {
  expect(rules.length).toBeGreaterThan(25);
  expect(rules.flatMap(({ expr }) => parseQuery(expr).faults)).toEqual([]);
});

test('every metric, label and value of a label that a rule names is there', () => {
  expect(rules.flatMap(({ expr }) => known.unknownIn(parseQuery(expr)))).toEqual([]);
});

function faults(expr: string): readonly string[] {
  return known.unknownIn(parseQuery(expr));
}

test('what is not there is found out', () => {
  expect(faults('rate(evalgate_requests_total[5m])')).toEqual(['there is no evalgate_requests_total']);
  expect(faults('evalgate_redis_up{rule="state"}')).toEqual(['evalgate_redis_up has no rule']);
  expect(faults('sum by (status) (evalgate_redis_up)')).toEqual(['evalgate_redis_up has no status']);
  expect(faults('up == on (pod) evalgate_quota_exact')).toEqual(['up has no pod', 'evalgate_quota_exact has no pod']);
  expect(faults('evalgate_readiness{status="ready"} + evalgate_workers{state="dead"}')).toEqual([
    'evalgate_workers has no state "dead"',
  ]);
  expect(parseQuery('sum by (le) (rate(up[5m]) > 0').faults).toHaveLength(1);
});

test('the dependencies that alerts go by are those of a gateway', async () => {
  const named = rules
    .flatMap(({ expr }) => parseQuery(expr).selectors.flatMap(({ matchers }) => matchers))
    .flatMap(({ label, value }) => (label === 'dependency' ? [value] : []));
  const redis = await startRedis();
  const gateway = await startTestGateway({ env: { REDIS_URL: redis.url } });
  try {
    const listed = z.object({ dependencies: z.array(z.object({ name: z.string() })) });
    const { dependencies } = listed.parse((await gateway.admin('GET', '/readyz')).json);
    expect(dependencies.map(({ name }) => name)).toEqual(expect.arrayContaining(named));
  } finally {
    await gateway.close();
    await redis.close();
  }
});

test('every alert has a severity, a summary that is one sentence, and a section of the runbook with its five parts', () => {
  const runbook = readText('docs/runbook.md');
  const sections = new Map(runbook.split(/^## /m).map((section) => [section.split('\n')[0] ?? '', section]));
  const parts = ['What it means.', 'What consumers see.', 'How to look.', 'What to do.', 'When to escalate.'];
  const wrong = alerts.filter(({ name, labels, annotations }) => {
    const section = sections.get(name) ?? '';
    return !(
      /^(?:critical|warning|info)$/.test(labels?.['severity'] ?? '') &&
      /^[A-Z].*\.$/.test(annotations?.['summary'] ?? '') &&
      annotations?.['runbook'] === `docs/runbook.md#${name.toLowerCase()}` &&
      parts.every((part) => section.includes(`**${part}**`))
    );
  });
  expect(wrong.map(({ name }) => name)).toEqual([]);
  const described = [...sections.keys()].filter((title) => title.startsWith('Evalgate'));
  expect(described.toSorted()).toEqual(alerts.map(({ name }) => name).toSorted());
});

test('each alert has a case that fires and one that does not', () => {
  const schema = z.looseObject({
    tests: z.array(
      z.looseObject({
        alert_rule_test: z.array(z.looseObject({ alertname: z.string(), exp_alerts: z.array(z.unknown()) })),
      }),
    ),
  });
  const cases = CASES.flatMap((name) => {
    const [document] = parseYaml(readText(`deploy/prometheus/${name}`));
    return schema.parse(document).tests.flatMap(({ alert_rule_test: inner }) => inner);
  });
  const lacking = alerts.filter(({ name }) => {
    const own = cases.filter(({ alertname }) => alertname === name);
    return (
      !own.some(({ exp_alerts: fires }) => fires.length > 0) || own.every(({ exp_alerts: fires }) => fires.length > 0)
    );
  });
  expect(lacking.map(({ name }) => name)).toEqual([]);
});

test('Kubernetes gets the same rules', async () => {
  const alertsFile = readText('deploy/prometheus/alerts.yaml');
  const groups = alertsFile.slice(alertsFile.indexOf('groups:')).replaceAll(/^(?=.)/gm, '  ');
  const manifest = `# Written from deploy/prometheus/alerts.yaml by \`npx vitest run test/unit/deploy -u\`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: evalgate
  labels:
    app.kubernetes.io/name: evalgate
spec:
${groups}`;
  await expect(manifest).toMatchFileSnapshot(join(DEPLOY, 'kubernetes/components/monitoring/prometheus-rule.yaml'));
});

test('Prometheus scrapes the admin listener under the job that rules go by', () => {
  const schema = z.looseObject({
    rule_files: z.array(z.string()),
    scrape_configs: z.tuple([
      z.looseObject({ job_name: z.string(), static_configs: z.array(z.object({ targets: z.array(z.string()) })) }),
    ]),
  });
  const [document] = parseYaml(readText('deploy/prometheus/prometheus.yml'));
  const { rule_files: files, scrape_configs: scrapes } = schema.parse(document);
  const { port } = loadConfig({ env: {} }).config.admin;
  expect(files).toEqual(['alerts.yaml']);
  expect(scrapes[0].job_name).toBe('evalgate');
  expect(scrapes[0]).not.toHaveProperty('metrics_path');
  const targets = scrapes[0].static_configs.flatMap(({ targets: names }) => names);
  expect(targets.map((target) => target.split(':')[1])).toEqual([String(port), String(port)]);
  const jobs = rules
    .flatMap(({ expr }) => parseQuery(expr).selectors)
    .flatMap(({ matchers }) => matchers.flatMap(({ label, value }) => (label === 'job' ? [value] : [])));
  expect(new Set(jobs)).toEqual(new Set(['evalgate']));
});

test('rules on metrics that other programs have too go by the job', () => {
  const loose = rules
    .flatMap(({ expr }) => parseQuery(expr).selectors)
    .filter(({ name, matchers }) => !name.startsWith('evalgate') && !matchers.some(({ label }) => label === 'job'));
  expect(loose).toEqual([]);
});

// Where there is no promtool, the tests above have read the rules; only types and values are not looked at.
test.skipIf(promtool === null)(
  'promtool takes the rules, and every case comes out as it says (skipped where promtool is not on the PATH)',
  async () => {
    const tool = promtool ?? '';
    const cwd = join(DEPLOY, 'prometheus');
    const checked = await run(tool, ['check', 'rules', '--lint=all', '--lint-fatal', 'alerts.yaml'], { cwd });
    expect(checked.stdout).toContain(`SUCCESS: ${rules.length} rules found`);
    const config = await run(tool, ['check', 'config', '--syntax-only', 'prometheus.yml'], { cwd });
    expect(config.stdout).toContain('SUCCESS');
    // Rejects where a case comes out otherwise.
    const tested = await run(tool, ['test', 'rules', ...CASES], { cwd });
    expect(tested.stdout.match(/SUCCESS/g)).toHaveLength(CASES.length);
  },
  120_000,
);

test.skipIf(promtool === null)(
  'promtool takes every query of the dashboard, the runbook and docs/metrics.md (skipped where promtool is not on the PATH)',
  async () => {
    const panels = readDashboard().panels.flatMap(({ targets }) => targets.map(({ expr }) => withoutVariables(expr)));
    const queries = [...panels, ...queriesOfPages(['docs/runbook.md', 'docs/metrics.md'])];
    const folder = await mkdtemp(join(tmpdir(), 'evalgate-queries-'));
    try {
      const file = join(folder, 'rules.json');
      const asked = queries.map((expr, place) => ({ record: `query_${place}`, expr }));
      await writeFile(file, JSON.stringify({ groups: [{ name: 'queries', rules: asked }] }));
      const { stdout } = await run(promtool ?? '', ['check', 'rules', file]);
      expect(stdout).toContain(`SUCCESS: ${queries.length} rules found`);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);
