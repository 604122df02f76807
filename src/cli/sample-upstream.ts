/** `evalgate sample-upstream`: the bundled store by itself, with faults on request. */
import { once } from 'node:events';
import { type Command, Option } from 'commander';
import { createSampleData } from '../sample/data.ts';
import { FAULT_OPTIONS, type Faults, MISBEHAVIOURS } from '../sample/faults.ts';
import { SampleEdits } from '../sample/edits.ts';
import { SampleUpstream } from '../sample/server.ts';
import { parseBase } from './admin-client.ts';
import type { Announcer } from './announcer.ts';
import { CliError, COMMAND, integerBetween, makeCommand, parser, print, secretFrom } from './command.ts';
import { systemCode } from '../log/error.ts';
import { countText } from './format.ts';
import { SUMMARIES } from './summaries.ts';
import { write } from './output.ts';

const DEFAULT_TOKEN = 'sample-token';

interface SampleOptions extends Faults {
  readonly host: string;
  readonly port: number;
  readonly evaluations: number;
  readonly latency: number;
  readonly seed: number;
  readonly announce?: string | undefined;
  readonly editRate: number;
  readonly deleteRate: number;
}

/** By the kind of the fault. */
const PARSERS = {
  rate: parser(
    (text) => (/^[01](?:\.\d+)?$/.test(text) && Number(text) <= 1 ? Number(text) : null),
    'a number from 0 to 1',
  ),
  status: integerBetween(400, 599),
  seconds: integerBetween(0, 86_400),
  calls: integerBetween(1, 10_000),
  perSecond: parser(
    (text) => (/^\d{1,4}(?:\.\d{1,3})?$/.test(text) ? Number(text) : null),
    'a number from 0 to 9999, such as 0.1',
  ),
  way: parser((text) => MISBEHAVIOURS.find((way) => way === text) ?? null, 'one of the ways that --help lists'),
};

export function sampleUpstreamCommand(): Command {
  const command = makeCommand({
    name: 'sample-upstream',
    summary: SUMMARIES['sample-upstream'],
    details: `Announcements are signed with CHANGES_SECRET, or carry the first token of ADMIN_TOKEN. It requires the bearer token of UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE, or "${DEFAULT_TOKEN}" if neither is set.`,
    examples: [
      'evalgate sample-upstream',
      'evalgate sample-upstream --port 9090 --evaluations 500 --latency 0',
      'evalgate sample-upstream --error-rate 0.2 --hang-rate 0.05',
      'evalgate sample-upstream --announce http://127.0.0.1:8081 --edit-rate 2 --delete-rate 0.1',
    ],
  })
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <n>', 'port to listen on; 0 takes any free one', integerBetween(0, 65_535), 9090)
    .option('--evaluations <n>', 'how many evaluations it holds', integerBetween(1, 1_000_000), 5000)
    .option('--latency <ms>', 'median latency in milliseconds; 0 is none', integerBetween(0, 60_000), 120)
    .option('--seed <n>', 'seed of the generated data', integerBetween(0, 4_294_967_295), 1)
    .optionsGroup('Changes:')
    .option('--edit-rate <n>', 'how many calls, transcripts and scorecards change per second', PARSERS.perSecond, 0)
    .option('--delete-rate <n>', 'how many calls are deleted per second', PARSERS.perSecond, 0)
    .option('--announce <url>', 'announce each change to the admin listener at that address', parseBase)
    .optionsGroup('Faults:');
  for (const { flag, kind, description } of FAULT_OPTIONS) {
    const option = kind === 'switch' ? new Option(flag, description) : new Option(`${flag} <${kind}>`, description);
    command.addOption(kind === 'switch' ? option : option.argParser<number | string>(PARSERS[kind]));
  }
  return command.action(run);
}

async function run(
  { host, port, evaluations, latency, seed, announce, editRate, deleteRate, ...faults }: SampleOptions,
  command: Command,
): Promise<void> {
  const givenToken = secretFrom('UPSTREAM_TOKEN', (written) => written);
  const token = givenToken ?? DEFAULT_TOKEN;
  const data = createSampleData({ seed, evaluations });
  const store = new SampleUpstream({ data, token, latency, faults, seed });
  // A secret that cannot be read is refused before the store is there.
  const announcer = announce === undefined ? null : await openAnnouncer(announce);
  const { url } = await store.listen(port, host).catch((error: unknown) => {
    const code = systemCode(error) ?? 'unknown error';
    throw new CliError(`It cannot listen on ${host}:${port} (${code}). Give another --port or --host.`);
  });
  const { workspaceIds } = data;
  // Before it announces itself, since whoever waits for that may stop it at once.
  const stopped = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  print(
    command,
    // A token from the environment is not shown.
    { url, token: givenToken === null ? token : null, evaluations, workspaceIds },
    [
      `The sample store listens on ${url} with ${countText(evaluations, 'evaluation')} in ${countText(workspaceIds.length, 'workspace')}:`,
      ...workspaceIds.map((id) => `  ${id}`),
      'A gateway in front of it:',
      `  UPSTREAM_URL=${url} UPSTREAM_TOKEN=${givenToken === null ? token : '...'} ${COMMAND} serve`,
    ].join('\n'),
  );
  const rates = { editsPerSecond: editRate, deletionsPerSecond: deleteRate };
  const stopChanging = new SampleEdits(data.records, seed).begin(rates, (edit) => announcer?.announce(edit));
  await stopped;
  announcer?.close();
  stopChanging();
  await store.close();
}

async function openAnnouncer(url: string): Promise<Announcer> {
  const { Announcer: Opened } = await import('./announcer.ts');
  const { parseAdminTokens } = await import('../config/admin-tokens.ts');
  const { parseChangesSecrets } = await import('../config/formats.ts');
  const secret = secretFrom('CHANGES_SECRET', parseChangesSecrets)?.[0] ?? null;
  const token = secretFrom('ADMIN_TOKEN', parseAdminTokens)?.[0]?.token ?? null;
  return new Opened({ url, secret, token, onRefused: reportRefusal });
}

function reportRefusal(status: number, text: string): void {
  write('stderr', `The gateway refused an announcement (${status}): ${text}\n`);
}
