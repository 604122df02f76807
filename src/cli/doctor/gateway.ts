/** `doctor --admin URL`: a running gateway by its own word, and where this shell's variables say something else. */
import { z } from 'zod';
import { redactedConfig } from '../../config/effective.ts';
import type { LoadedConfig } from '../../config/load.ts';
import { type AdminClient, reasonOf } from '../admin-client.ts';
import { type Check, fail, ok, skipped, warn } from './check.ts';

const valueSchema = z.object({ value: z.unknown(), origin: z.string(), from: z.string().nullable() });
type EffectiveValue = z.output<typeof valueSchema>;

const configSchema = z.object({ file: z.string(), settings: z.record(z.string(), z.unknown()) });
const readinessSchema = z.object({
  status: z.string(),
  dependencies: z.array(z.object({ name: z.string(), status: z.string(), since: z.string(), detail: z.string() })),
});

/**
 * One check of the configuration and one per dependency. `shell` is what the variables of this shell would make; null if
 * they are faulty. Rejects with a CliError if the gateway lets us not look.
 */
export async function checkGateway(
  base: string,
  client: AdminClient,
  shell: LoadedConfig | null,
): Promise<readonly Check[]> {
  const config = await client.call({ method: 'GET', path: '/api/config', answer: configSchema });
  return [...compare(config, shell), ...(await checkReadiness(base))];
}

function compare({ file, settings }: z.output<typeof configSchema>, shell: LoadedConfig | null): readonly Check[] {
  const theirs = flattened(settings);
  const message = `the gateway's own: ${file}; values other than defaults: ${count(theirs, 'file')} from the file, ${count(theirs, 'environment')} from the environment`;
  if (shell === null) return [ok('config', message), skipped('config', "this shell's variables are faulty")];
  const ours = flattened(redactedConfig(shell).settings);
  const checks = [ok('config', message)];
  const hidden: string[] = [];
  for (const { setting, origin } of shell.resolved) {
    const [our, their] = [ours.get(setting.id), theirs.get(setting.id)];
    if (origin !== 'environment' || setting.env === null || our === undefined) continue;
    if (setting.secret) hidden.push(setting.env);
    else if (JSON.stringify(our.value) !== JSON.stringify(their?.value))
      checks.push(difference(setting.env, our, their));
  }
  if (hidden.length > 0) checks.push(skipped('config', `not compared, since they are secrets: ${hidden.join(', ')}`));
  return checks;
}

function difference(variable: string, ours: EffectiveValue, theirs: EffectiveValue | undefined): Check {
  const theirValue = theirs === undefined ? 'no such setting' : JSON.stringify(theirs.value);
  return warn(
    'config',
    `${variable} is ${JSON.stringify(ours.value)} in this shell; the gateway runs with ${theirValue}`,
    'If this shell has it right, restart the gateway with it.',
  );
}

/** `/readyz` is asked without the client, because a gateway that is not ready says why with status 503. */
async function checkReadiness(base: string): Promise<readonly Check[]> {
  let text: string;
  try {
    const response = await fetch(`${base}/readyz`, { redirect: 'manual', signal: AbortSignal.timeout(5000) });
    text = await response.text();
  } catch (error) {
    return [fail('ready', `/readyz gives no answer: ${reasonOf(error)}`, null)];
  }
  const { status, dependencies } = readinessSchema.parse(JSON.parse(text));
  const isReady = status === 'ready';
  return [
    isReady ? ok('ready', 'the gateway is ready') : fail('ready', `the gateway is ${status}`, 'See its log.'),
    ...dependencies.map(({ name, status: found, since, detail }) => {
      if (found === 'ok') return ok(name, detail);
      if (found === 'unknown') return skipped(name, detail);
      return warn(name, `${detail} (since ${since})`, 'See the runbook for this dependency, docs/runbook.md.');
    }),
  ];
}

function count(values: ReadonlyMap<string, EffectiveValue>, origin: string): number {
  return [...values.values()].filter((one) => one.origin === origin).length;
}

/** The settings of a tree of sections by id, such as `upstream.timeout`. */
function flattened(tree: unknown, path: readonly string[] = []): ReadonlyMap<string, EffectiveValue> {
  const parsed = valueSchema.safeParse(tree);
  if (parsed.success) return new Map([[path.join('.'), parsed.data]]);
  const sections = z.record(z.string(), z.unknown()).parse(tree);
  return new Map(Object.entries(sections).flatMap(([name, inner]) => [...flattened(inner, [...path, name])]));
}
