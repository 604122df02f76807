/** The files in deploy, as the tests read them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';

export const ROOT = join(import.meta.dirname, '../..');

/** `path` is below the project's root. */
export function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** Every document of a YAML text. Throws if it is not sound, names twice included. */
export function parseYaml(text: string): readonly unknown[] {
  return parseAllDocuments(text, { merge: true }).map((document) => {
    const [fault] = document.errors;
    if (fault !== undefined) throw fault;
    const value: unknown = document.toJS();
    return value;
  });
}

/** The names of all files below `folder`, a folder of the project's root, of one of these endings. */
export function filesBelow(folder: string, ...endings: readonly string[]): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => endings.some((ending) => name.endsWith(ending)))
    .map((name) => join(folder, name))
    .toSorted();
}

const ruleSchema = z.strictObject({
  expr: z.string(),
  record: z.string().optional(),
  alert: z.string().optional(),
  for: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});

const rulesSchema = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), rules: z.array(ruleSchema) })),
});

/** The rules of deploy/prometheus/alerts.yaml. */
export function readRules() {
  const [document] = parseYaml(readText('deploy/prometheus/alerts.yaml'));
  return rulesSchema.parse(document).groups.flatMap(({ rules }) => rules);
}

const panelSchema = z.looseObject({
  id: z.number(),
  type: z.enum(['row', 'stat', 'timeseries']),
  title: z.string(),
  targets: z.array(z.looseObject({ expr: z.string(), refId: z.string() })).default([]),
});
const dashboardSchema = z.looseObject({
  uid: z.string(),
  panels: z.array(panelSchema),
  templating: z.looseObject({ list: z.array(z.looseObject({ name: z.string(), query: z.string() })) }),
  annotations: z.looseObject({ list: z.array(z.looseObject({ expr: z.string().optional() })) }),
});

export function readDashboard() {
  return dashboardSchema.parse(JSON.parse(readText('deploy/grafana/evalgate.json')));
}

export function queriesOf(page: string): readonly string[] {
  return [...readText(page).matchAll(/```promql\n([^]*?)```/g)]
    .flatMap(([, block = '']) => block.replaceAll(/\n\s+(?=\S)/g, ' ').split('\n'))
    .filter((line) => line !== '');
}
