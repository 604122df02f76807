/** `evalgate doctor`: looks at everything that a gateway needs and says what to do about what is wrong. */
import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { UUID_PATTERN } from '../../domain/records.ts';
import { adminClientOf, withAdminOption } from '../admin-client.ts';
import { answer, makeCommand, matching } from '../command.ts';
import { EXIT_CODES } from '../errors.ts';
import type { Terminal } from '../terminal.ts';
import { checkAdmin } from './admin.ts';
import type { Check } from './check.ts';
import { checkConfig } from './config.ts';
import { checkGateway } from './gateway.ts';
import { checkRedis } from './redis.ts';
import { checkUpstream } from './upstream.ts';

interface DoctorOptions {
  readonly admin: string;
  readonly workspace?: string;
}

export function doctorCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'doctor',
      summary: 'check the configuration, Redis, the store, the clocks and a running gateway',
      details:
        'It only reads, but for one name of its own that it writes in Redis and deletes again.\n' +
        "With --admin it looks at that gateway: its own configuration and readiness, and what this shell's variables say differently.\n" +
        'The exit status is 1 where something is wrong.',
      examples: [
        'evalgate doctor',
        'evalgate doctor --admin http://gateway-1:8081',
        'evalgate doctor --workspace 0b5e7a52-3f0e-4c39-9d7c-6f3f1f0f7c11 --json',
      ],
    },
    terminal,
  ).option('--workspace <uuid>', "look at this workspace's records too", matching(UUID_PATTERN, 'a UUID'));
  return withAdminOption(command, terminal).action(async () => {
    const { admin, workspace } = command.opts<DoctorOptions>();
    const local = checkConfig(terminal.env);
    const gateway = await checkAdmin(admin, terminal.env);
    const isNamed = command.getOptionValueSource('admin') === 'cli';
    const checks: Check[] = [gateway];
    if (!isNamed || gateway.status === 'skipped') {
      if (local.loaded !== null) checks.unshift(...(await checkServices(local.loaded.config, workspace ?? null)));
      checks.unshift(...local.checks);
    } else if (gateway.status === 'ok') {
      checks.unshift(...(await checkGateway(admin, adminClientOf(command, terminal), local.loaded)));
    }
    const isWell = checks.every(({ status }) => status !== 'fail');
    answer(terminal, command, { document: { ok: isWell, checks }, text: checks.map(checkText).join('\n') });
    process.exitCode = isWell ? EXIT_CODES.ok : EXIT_CODES.failed;
  });
}

async function checkServices(config: Config, workspaceId: string | null): Promise<readonly Check[]> {
  const [redis, upstream] = await Promise.all([checkRedis(config), checkUpstream(config.upstream, workspaceId)]);
  return [...redis, ...upstream];
}

function checkText({ name, status, message, advice }: Check): string {
  const lines = message.split('\n').concat(advice === null ? [] : [`What to do: ${advice}`]);
  const [first = '', ...others] = lines;
  return [`${status.padEnd(8)}${name.padEnd(10)}${first}`, ...others.map((line) => `${' '.repeat(18)}${line}`)].join(
    '\n',
  );
}
