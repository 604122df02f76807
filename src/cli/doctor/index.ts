/** `evalgate doctor`: checks everything that a gateway needs and says what to do about each fault. */
import type { Command } from 'commander';
import { MIN_TOKEN_LENGTH } from '../../config/cross-checks.ts';
import { ConfigError } from '../../config/errors.ts';
import { loadConfig, type LoadedConfig } from '../../config/load.ts';
import { UUID_PATTERN } from '../../domain/records.ts';
import { adminAddress, adminCommand } from '../admin-client.ts';
import { CliError, matching, print } from '../command.ts';
import { type Check, checksNamed } from './check.ts';
import { checkAdmin, checkGateway, configText } from './gateway.ts';
import { checkRedis } from './redis.ts';
import { checkUpstream } from './upstream.ts';

const checks = checksNamed('config');

export function doctorCommand(): Command {
  return adminCommand({
    name: 'doctor',
    summary: 'check the configuration, Redis, the store, the clocks and a running gateway',
    details:
      'It only reads, except for one name of its own that it writes in Redis and deletes again.\n' +
      "With --admin it checks that gateway: its configuration and readiness, and how this shell's variables differ.\n" +
      'The exit status is 1 if any check fails. A dependency that the gateway reports as degraded is a failed check; ' +
      'maintenance, which somebody has switched on, is only a warning. Warnings do not change the exit status.',
    examples: [
      'evalgate doctor',
      'evalgate doctor --admin http://gateway-1:8081',
      'evalgate doctor --workspace 2393e09e-a0b1-4849-8887-0fb942eae255 --json',
    ],
  })
    .option(
      '--workspace <uuid>',
      'also check the lists and records of this workspace',
      matching(UUID_PATTERN, 'a UUID'),
    )
    .action(async ({ workspace }: { workspace?: string }, command: Command) => {
      const found = await examine(command, workspace ?? null);
      const isWell = found.every(({ status }) => status !== 'fail');
      print(command, { ok: isWell, checks: found }, checksText(found));
      process.exitCode = isWell ? 0 : 1;
    });
}

/** If `--admin` names a gateway that runs, that gateway is checked, and not the Redis and store of this shell's variables. */
async function examine(command: Command, workspace: string | null): Promise<readonly Check[]> {
  const local = checkConfig();
  const gateway = await checkAdmin(command);
  if (adminAddress(command).isGiven && gateway.status !== 'skipped') {
    try {
      // In an outage its readiness says why its keys cannot be read.
      return [...(await checkGateway(command, local.loaded)), gateway];
    } catch (error) {
      if (gateway.status === 'ok' || !(error instanceof CliError)) throw error;
      return [gateway];
    }
  }
  if (local.loaded === null) return [...local.checks, gateway];
  const { config } = local.loaded;
  const services = await Promise.all([checkRedis(config), checkUpstream(config, workspace)]);
  return [...local.checks, ...services.flat(), gateway];
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

function checksText(found: readonly Check[]): string {
  const width = 2 + Math.max(8, ...found.map(({ name }) => name.length));
  const indent = ' '.repeat(8 + width);
  return found
    .flatMap(({ name, status, message, advice }) => {
      const [first = '', ...others] = [...message.split('\n'), ...(advice === null ? [] : [`What to do: ${advice}`])];
      return [`${status.padEnd(8)}${name.padEnd(width)}${first}`, ...others.map((line) => indent + line)];
    })
    .join('\n');
}
