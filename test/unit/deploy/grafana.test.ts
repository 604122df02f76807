import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type Dashboard, parseYaml, readDashboard, readText, withoutVariables } from './files.ts';
import { knownMetrics, type KnownMetrics } from './known-metrics.ts';
import { parseQuery } from './promql.ts';

const dashboard = readDashboard();
const panels = dashboard.panels.filter(({ type }) => type !== 'row');
const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

let known: KnownMetrics;
beforeAll(async () => {
  known = await knownMetrics();
});

test('every query is PromQL, of metrics and labels that are there', () => {
  expect(queries.length).toBeGreaterThan(50);
  const annotated = dashboard.annotations.list.flatMap(({ expr }) => (expr === undefined ? [] : [expr]));
  for (const expr of [...queries, ...annotated].map(withoutVariables)) {
    const query = parseQuery(expr);
    expect({ expr, faults: query.faults, unknown: known.unknownIn(query) }).toEqual({ expr, faults: [], unknown: [] });
  }
});

test('every query goes by the job and the gateways that are chosen, and by the data source that is', () => {
  const loose = queries.filter((expr) =>
    parseQuery(expr).selectors.some(({ matchers }) => {
      const chosen = matchers.map(({ label, value }) => `${label}=${value}`);
      return !chosen.includes('job=$job') || !chosen.includes('instance=$instance');
    }),
  );
  expect(loose).toEqual([]);
  expect(panels.filter(({ datasource }) => datasource?.uid !== '${datasource}')).toEqual([]);
  expect(dashboard.templating.list.map(({ name }) => name)).toEqual(['datasource', 'job', 'instance']);
});

test('the variables ask for metrics that are there', () => {
  const asked = dashboard.templating.list.flatMap(({ query }) => {
    const selector = /^label_values\((.*), (?:job|instance)\)$/.exec(query)?.[1];
    return selector === undefined ? [] : [withoutVariables(selector)];
  });
  expect(asked).toEqual(['evalgate_build_info', 'evalgate_build_info{job=~".*"}']);
  expect(asked.flatMap((selector) => known.unknownIn(parseQuery(selector)))).toEqual([]);
});

test('each counter is a rate or an increase, never shown as it stands', () => {
  const bare = queries.filter((expr) => /_total\{[^}]*\}(?!\[)/.test(expr));
  expect(bare).toEqual([]);
});

test('panels have ids of their own, lie within the width of 24, and none lies on another', () => {
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  const cells = dashboard.panels.flatMap((panel) => cellsOf(panel));
  expect(new Set(cells).size).toBe(cells.length);
  expect(dashboard.panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
  const titles = panels.map(({ title }) => title);
  expect(new Set(titles).size).toBe(titles.length);
});

function cellsOf({ gridPos: { x, y, w, h } }: Dashboard['panels'][number]): readonly string[] {
  return Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`);
}

test('Grafana finds data source and dashboard where the files say', () => {
  const provider = z.object({ providers: z.tuple([z.looseObject({ options: z.object({ path: z.string() }) })]) });
  const source = z.object({ datasources: z.tuple([z.looseObject({ type: z.literal('prometheus'), url: z.url() })]) });
  const [folder] = parseYaml(readText('deploy/grafana/provisioning/dashboards/evalgate.yaml'));
  const [data] = parseYaml(readText('deploy/grafana/provisioning/datasources/prometheus.yaml'));
  expect(provider.parse(folder).providers[0].options.path).toBe('/var/lib/grafana/dashboards');
  expect(source.parse(data).datasources[0].url).toBe('http://prometheus:9090');
});
