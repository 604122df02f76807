/** Checks of a running gateway: whether one listens, its own configuration and readiness, and how this shell differs. */
import type { Command } from 'commander';
import { z } from 'zod';
import { readinessSchema } from '../../admin/answers.ts';
import { type AnswerOf, ROUTES } from '../../admin/api.ts';
import { redactedConfig } from '../../config/effective.ts';
import type { LoadedConfig } from '../../config/load.ts';
import { ADDRESS_ADVICE, adminAddress, AdminCallError, callAdmin, reasonOf } from '../admin-client.ts';
import { CliError } from '../command.ts';
import { type Check, checksNamed } from './check.ts';

const admin = checksNamed('admin');
const config = checksNamed('config');
const ready = checksNamed('ready');

/** For the two endpoints that need no token. */
const TIMEOUT_MS = 5000;

const valueSchema = z.object({ value: z.unknown(), origin: z.string(), from: z.string().nullable() });
type EffectiveValue = z.output<typeof valueSchema>;

/** Whether a gateway runs and accepts the token. None is no fault: the doctor is also run before the first start. */
export async function checkAdmin(command: Command): Promise<Check> {
  const { base } = adminAddress(command);
  if (!(await isListening(base))) return admin.skipped(`no gateway runs: nothing answers at ${base}`);
  try {
    const query = new URLSearchParams({ limit: '1000' });
    const { keys, nextCursor } = await callAdmin(command, ROUTES.listKeys, { query });
    const more = nextCursor === null ? '' : ' and more';
    return admin.ok(`a gateway runs at ${base} and knows ${keys.length}${more} keys`);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    if (!(error instanceof AdminCallError)) return admin.fail(error.message, null);
    return admin.fail(error.finding, error.advice ?? adviceFor(error.status));
  }
}

/** The advice if the error has none. The public listener of a gateway answers with 404. */
function adviceFor(status: number | null): string | null {
  if (status !== null && status >= 500) return 'See what is degraded above; it is back when that is.';
  return status === 404 ? ADDRESS_ADVICE : null;
}

async function isListening(base: string): Promise<boolean> {
  try {
    const response = await fetch(`${base}/livez`, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) });
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  }
}

/**
 * One check of the configuration and one per dependency. `shell` is the configuration that this shell's variables make;
 * null if it is invalid. Rejects with CliError if the listener refuses.
 */
export async function checkGateway(command: Command, shell: LoadedConfig | null): Promise<readonly Check[]> {
  const theirs = await callAdmin(command, ROUTES.config);
  return [...compareConfigs(theirs, shell), ...(await checkReadiness(adminAddress(command).base))];
}

function compareConfigs(
  { file, settings }: AnswerOf<typeof ROUTES.config>,
  shell: LoadedConfig | null,
): readonly Check[] {
  const theirs = flattened(settings);
  const count = (origin: string): number => [...theirs.values()].filter((value) => value.origin === origin).length;
  const message = `the gateway's own: ${file}; values other than defaults: ${count('file')} from the file, ${count('environment')} from the environment`;
  const checks = [config.ok(message)];
  if (shell === null) return [...checks, config.skipped("this shell's variables are faulty")];
  const ours = flattened(redactedConfig(shell).settings);
  const secrets: string[] = [];
  for (const { setting, origin } of shell.resolved) {
    const [our, their] = [ours.get(setting.id), theirs.get(setting.id)];
    if (origin !== 'environment' || setting.env === null || our === undefined) continue;
    if (setting.secret) {
      secrets.push(setting.env);
    } else if (JSON.stringify(our.value) !== JSON.stringify(their?.value)) {
      const theirValue = their === undefined ? 'no such setting' : JSON.stringify(their.value);
      checks.push(
        config.warn(
          `${setting.env} is ${JSON.stringify(our.value)} in this shell; the gateway runs with ${theirValue}`,
          'If this shell has it right, restart the gateway with it.',
        ),
      );
    }
  }
  if (secrets.length > 0) checks.push(config.skipped(`not compared, since they are secrets: ${secrets.join(', ')}`));
  return checks;
}

/** The values of a tree of sections by setting, such as `upstream.timeout`. */
function flattened(tree: unknown, path: readonly string[] = []): ReadonlyMap<string, EffectiveValue> {
  const parsed = valueSchema.safeParse(tree);
  if (parsed.success) return new Map([[path.join('.'), parsed.data]]);
  const sections = z.record(z.string(), z.unknown()).parse(tree);
  return new Map(Object.entries(sections).flatMap(([name, inner]) => [...flattened(inner, [...path, name])]));
}

/** Reads `/readyz` without the client, because a gateway that is not ready answers with status 503. */
async function checkReadiness(base: string): Promise<readonly Check[]> {
  let text: string;
  try {
    const response = await fetch(`${base}/readyz`, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) });
    text = await response.text();
  } catch (error) {
    return [ready.fail(`/readyz gives no answer: ${reasonOf(error)}`, null)];
  }
  const { status, dependencies } = readinessSchema.parse(JSON.parse(text));
  return [
    status === 'ready' ? ready.ok('the gateway is ready') : ready.fail(`the gateway is ${status}`, 'See its log.'),
    ...dependencies.map(({ name, status: found, since, detail }) => {
      const { ok, skipped, warn } = checksNamed(name);
      if (found === 'ok') return ok(detail);
      if (found === 'unknown') return skipped(detail);
      return warn(`${detail} (since ${since})`, 'See the runbook for this dependency, docs/runbook.md.');
    }),
  ];
}
