/** Checks of a running gateway: whether one listens, its own configuration and readiness, and how this shell differs. */
import type { Command } from 'commander';
import { z } from 'zod';
import { type AnswerOf, PROBES, type ROUTES } from '../../operations/api.ts';
import { redactedConfig } from '../../config/effective.ts';
import type { LoadedConfig } from '../../config/load.ts';
import { ADDRESS_ADVICE, adminAddress, AdminCallError, callAdmin } from '../admin-client.ts';
import { CliError } from '../command.ts';
import { countText } from '../format.ts';
import { type Check, checksNamed } from './check.ts';

const admin = checksNamed('admin');
const config = checksNamed('config');
const ready = checksNamed('ready');
/** Unstable calls that are named. */
const MAX_NAMED = 5;

const valueSchema = z.object({ value: z.unknown(), origin: z.string() });

/** Whether a gateway runs and accepts the token. None is no fault: the doctor is also run before the first start. */
export async function checkAdmin(command: Command): Promise<Check> {
  const { base } = adminAddress(command);
  try {
    const query = new URLSearchParams({ limit: '1000' });
    const { keys, nextCursor } = await callAdmin(command, (routes) => routes.listKeys, { query });
    const known = nextCursor === null ? countText(keys.length, 'key') : `${keys.length} keys and more`;
    return admin.ok(`a gateway runs at ${base} and knows ${known}`);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    if (!(error instanceof AdminCallError)) return admin.fail(error.message, null);
    const { status, finding, advice } = error;
    if (status === 'unreachable') return admin.skipped(`no gateway runs: nothing answers at ${base}`);
    // The public listener of a gateway answers with 404.
    if (status === 404) return admin.fail(finding, advice ?? ADDRESS_ADVICE);
    const outage = Number(status) >= 500 ? 'See what is degraded above; it is back when that is.' : null;
    return admin.fail(finding, advice ?? outage);
  }
}

/**
 * One check of the configuration and one per dependency. `shell` is the configuration that this shell's variables make;
 * null if it is invalid. Rejects with CliError if the listener refuses.
 */
export async function checkGateway(command: Command, shell: LoadedConfig | null): Promise<readonly Check[]> {
  const theirs = await callAdmin(command, (routes) => routes.config);
  return [...compareConfigs(theirs, shell), ...(await checkReadiness(command)), ...(await checkStability(command))];
}

function compareConfigs(
  { file, settings }: AnswerOf<typeof ROUTES.config>,
  shell: LoadedConfig | null,
): readonly Check[] {
  const theirs = flattened(settings);
  const checks = [config.ok(`the gateway's own: ${configText(file, [...theirs.values()])}`)];
  if (shell === null) return [...checks, config.skipped("this shell's variables are faulty")];
  const ours = flattened(redactedConfig(shell).settings);
  const given = shell.resolved.filter(({ origin }) => origin === 'environment').map(({ setting }) => setting);
  for (const { id, env, secret } of given) {
    const [our, their] = [ours.get(id), theirs.get(id)].map((found) => found && JSON.stringify(found.value));
    if (secret || our === their) continue;
    checks.push(
      config.warn(
        `${env} is ${our} in this shell; the gateway runs with ${their ?? 'no such setting'}`,
        'If this shell has it right, restart the gateway with it.',
      ),
    );
  }
  const secrets = given.filter(({ secret }) => secret).map(({ env }) => env);
  if (secrets.length > 0) checks.push(config.skipped(`not compared, since they are secrets: ${secrets.join(', ')}`));
  return checks;
}

export function configText(file: string, values: readonly { readonly origin: string }[]): string {
  const count = (sought: string): number => values.filter(({ origin }) => origin === sought).length;
  return `${file}; values other than defaults: ${count('file')} from the file, ${count('environment')} from the environment`;
}

/** The values of a tree of sections by setting, such as `upstream.timeout`. */
function flattened(tree: unknown, path: readonly string[] = []): ReadonlyMap<string, z.output<typeof valueSchema>> {
  const parsed = valueSchema.safeParse(tree);
  if (parsed.success) return new Map([[path.join('.'), parsed.data]]);
  const sections = z.record(z.string(), z.unknown()).parse(tree);
  return new Map(Object.entries(sections).flatMap(([name, inner]) => [...flattened(inner, [...path, name])]));
}

/** A degraded dependency is a fault, since requests or changes suffer; but for maintenance, which somebody switched on. */
/** Calls that the store answers differently again and again. None is no finding. */
async function checkStability(command: Command): Promise<readonly Check[]> {
  const { unstable } = await callAdmin(command, (routes) => routes.cacheStats);
  if (unstable.length === 0) return [];
  const { warn } = checksNamed('changes');
  const named = unstable.slice(0, MAX_NAMED).join(', ');
  const which = unstable.length > MAX_NAMED ? `${named} and ${unstable.length - MAX_NAMED} more` : named;
  return [
    warn(
      `the store answers differently each time for ${countText(unstable.length, 'call')}: ${which}`,
      'Their transcripts and scorecards may be older than the call. Find out which member differs without a change.',
    ),
  ];
}

async function checkReadiness(command: Command): Promise<readonly Check[]> {
  const { status, dependencies } = await callAdmin(command, () => PROBES.readyz);
  return [
    status === 'ready' ? ready.ok('the gateway is ready') : ready.fail(`the gateway is ${status}`, 'See its log.'),
    ...dependencies.map(({ name, status: found, since, detail }) => {
      const { ok, skipped, warn, fail } = checksNamed(name);
      if (found === 'ok') return ok(detail);
      if (found === 'unknown') return skipped(detail);
      const message = `${detail} (since ${since})`;
      if (name === 'maintenance') return warn(message, 'To end it: evalgate cache maintenance off.');
      return fail(message, 'See the runbook for this dependency, docs/runbook.md.');
    }),
  ];
}
