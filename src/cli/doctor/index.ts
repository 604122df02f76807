/** `evalgate doctor`: checks everything that a gateway needs and says what to do about each fault. */
import type { Command } from 'commander';
import { MIN_TOKEN_LENGTH } from '../../config/cross-checks.ts';
import { ConfigError } from '../../config/errors.ts';
import { loadConfig, type LoadedConfig } from '../../config/load.ts';
import { adminAddress } from '../admin-client.ts';
import { CliError } from '../command.ts';
import { write, writeJson } from '../output.ts';
import { type Check, checksNamed } from './check.ts';
import { checkAdmin, checkGateway, configText } from './gateway.ts';
import { checkRedis } from './redis.ts';
import { checkUpstream } from './upstream.ts';

const checks = checksNamed('config');

/** Prints each check as it ends, with `json` one document at the end; sets the exit status. */
export async function examineAll(
  command: Command,
  { workspace, json }: { readonly workspace?: string; readonly json?: boolean },
): Promise<void> {
  const found: Check[] = [];
  for await (const check of examine(command, workspace ?? null)) {
    found.push(check);
    if (json !== true) write('stdout', `${checkText(check)}\n`);
  }
  const isWell = found.every(({ status }) => status !== 'fail');
  if (json === true) writeJson({ ok: isWell, checks: found }, 2);
  process.exitCode = isWell ? 0 : 1;
}

/**
 * Each check as it ends: of this shell's variables with their Redis and store, and of the gateway. One that runs at another
 * address than these variables give it is checked alone.
 */
async function* examine(command: Command, workspace: string | null): AsyncGenerator<Check> {
  const local = checkConfig();
  const gateway = await checkAdmin(command);
  const runs = gateway.status !== 'skipped';
  if (adminAddress(command).isNearby || !runs) {
    yield* local.checks;
    if (local.loaded !== null) {
      yield* await checkRedis(local.loaded.config);
      yield* checkUpstream(local.loaded.config, workspace);
    }
  }
  if (runs) {
    try {
      // In an outage its readiness says why its keys cannot be read.
      yield* await checkGateway(command, local.loaded);
    } catch (error) {
      if (gateway.status === 'ok' || !(error instanceof CliError)) throw error;
    }
  }
  yield gateway;
}

/** The configuration of this shell's variables; null if it is invalid. */
function checkConfig(): { readonly loaded: LoadedConfig | null; readonly checks: readonly Check[] } {
  try {
    const loaded = loadConfig({ env: process.env });
    // Weak tokens have a check of their own, which also covers a listener that only this machine reaches.
    const warnings = loaded.warnings
      .filter((warning) => !warning.startsWith('ADMIN_TOKEN: '))
      .map((warning) => checks.warn(warning, 'Change it, unless it is meant.'));
    return {
      loaded,
      checks: [checks.ok(configText(loaded.file, loaded.resolved)), ...warnings, ...checkTokens(loaded)],
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const advice = 'Correct what is listed; docs/configuration.md lists all settings.';
    return { loaded: null, checks: [checks.fail(error.message, advice)] };
  }
}

function checkTokens({ config }: LoadedConfig): readonly Check[] {
  const weak = config.admin.tokens.filter(({ token }) => token.length < MIN_TOKEN_LENGTH).map(({ name }) => name);
  if (weak.length === 0) return [];
  const message = `admin tokens of fewer than ${MIN_TOKEN_LENGTH} characters can be guessed: ${weak.join(', ')}`;
  return [checks.warn(message, 'Make new ones: openssl rand -base64 24')];
}

/** As long as the longest names, `encryption` and `maintenance`, so that the messages of all lines are aligned. */
const NAME_WIDTH = 13;

function checkText({ name, status, message, advice }: Check): string {
  const [first = '', ...others] = [...message.split('\n'), ...(advice === null ? [] : [`What to do: ${advice}`])];
  const indent = ' '.repeat(8 + NAME_WIDTH);
  return [`${status.padEnd(8)}${name.padEnd(NAME_WIDTH)}${first}`, ...others.map((line) => indent + line)].join('\n');
}
