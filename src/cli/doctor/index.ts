/** `evalgate doctor`: checks everything that a gateway needs and says what to do about each fault. */
import type { Command } from 'commander';
import { MIN_TOKEN_LENGTH } from '../../config/cross-checks.ts';
import { ConfigError } from '../../config/errors.ts';
import { loadConfig, type LoadedConfig } from '../../config/load.ts';
import { UUID_PATTERN } from '../../domain/records.ts';
import { adminAddress, adminCommand } from '../admin-client.ts';
import { CliError, matching } from '../command.ts';
import { write, writeJson } from '../output.ts';
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
      'Each check is printed as it ends; --json prints one document at the end.\n' +
      'The store gets 4 calls at a time at most, and no more than upstream.maxRequestsPerSecond.\n' +
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
    .action(async ({ workspace, json }: { workspace?: string; json?: boolean }, command: Command) => {
      const found: Check[] = [];
      for await (const check of examine(command, workspace ?? null)) {
        found.push(check);
        if (json !== true) write('stdout', `${checkText(check)}\n`);
      }
      const isWell = found.every(({ status }) => status !== 'fail');
      if (json === true) writeJson({ ok: isWell, checks: found }, 2);
      process.exitCode = isWell ? 0 : 1;
    });
}

/**
 * Each check as it ends. If `--admin` names a gateway that runs, that gateway is checked, and not the Redis and store of this
 * shell's variables.
 */
async function* examine(command: Command, workspace: string | null): AsyncGenerator<Check> {
  const local = checkConfig();
  const gateway = await checkAdmin(command);
  if (adminAddress(command).isGiven && gateway.status !== 'skipped') {
    try {
      // In an outage its readiness says why its keys cannot be read.
      yield* await checkGateway(command, local.loaded);
    } catch (error) {
      if (gateway.status === 'ok' || !(error instanceof CliError)) throw error;
    }
    yield gateway;
    return;
  }
  yield* local.checks;
  if (local.loaded !== null) {
    yield* await checkRedis(local.loaded.config);
    yield* checkUpstream(local.loaded.config, workspace);
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
