/**
 * The commands that load much: their options here, and their code when they run, so that `--help` and a wrong call are
 * answered at once.
 */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { TRANSCRIPT_FORMATS, type TranscriptFormat, UUID_PATTERN } from '../domain/vocabulary.ts';
import { adminCommand } from './admin-client.ts';
import { durationBetween, makeCommand, matching } from './command.ts';
import { SUMMARIES } from './summaries.ts';
import { type Part, PARTS, type SyncOptions } from './sync/options.ts';

export function serveCommand(): Command {
  return makeCommand({
    name: 'serve',
    summary: SUMMARIES.serve,
    details:
      'It runs in front of the store at UPSTREAM_URL. With --demo and without UPSTREAM_URL it runs in front of the bundled ' +
      'sample store and prints keys to try it with; `npm start` does this.\n' +
      'With WORKERS=n, which needs REDIS_URL, n processes serve, and one more keeps them running.',
    examples: [
      'evalgate serve --demo',
      'UPSTREAM_URL=https://store.example UPSTREAM_TOKEN_FILE=/run/secrets/store evalgate serve',
      'WORKERS=4 REDIS_URL=redis://127.0.0.1:6379 evalgate serve',
    ],
  })
    .option('--demo', 'serve the bundled sample store if UPSTREAM_URL is not set')
    .action(async ({ demo = false }: { demo?: boolean }, command: Command) => {
      const { serve } = await import('./serve.ts');
      await serve(command, demo);
    });
}

export function doctorCommand(): Command {
  return adminCommand({
    name: 'doctor',
    summary: SUMMARIES.doctor,
    details:
      'Each check is printed as it ends; --json prints one document at the end.\n' +
      'The store gets 4 calls at a time at most, and no more than upstream.maxRequestsPerSecond.\n' +
      'It only reads, except for one name of its own that it writes in Redis and deletes again.\n' +
      "A gateway that runs on this machine is checked too: its configuration and readiness, and how this shell's variables differ. " +
      'With --admin or EVALGATE_ADMIN_URL and another address, the gateway there is checked, and not the Redis and store of these variables.\n' +
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
    .action(async (options: { workspace?: string; json?: boolean }, command: Command) => {
      const { examineAll } = await import('./doctor/index.ts');
      await examineAll(command, options);
    });
}

export function transcriptCommand(): Command {
  return makeCommand({
    name: 'transcript',
    summary: SUMMARIES.transcript,
    details:
      'The file is read as a transcript of the store would be; docs/transcripts.md describes the forms. The shape that won is shown with its evidence, and the runner-up. It needs no running gateway. --json prints every turn whole.',
    examples: [
      'evalgate transcript call.vtt',
      'evalgate transcript call.txt --format speaker_text --json',
      'cat call.srt | evalgate transcript -',
    ],
  })
    .addArgument(new Argument('<file>', 'the transcript, in UTF-8; - for standard input'))
    .addOption(new Option('--format <format>', 'what the store calls it: a hint').choices(TRANSCRIPT_FORMATS))
    .action(async (path: string, { format = null }: { format?: TranscriptFormat | null }, command: Command) => {
      const { showTranscript } = await import('./transcript.ts');
      await showTranscript(command, path, format);
    });
}

const MIN_EVERY_MS = 10_000;
const MAX_EVERY_MS = 7 * 86_400_000;

export function syncCommand(): Command {
  return makeCommand({
    name: 'sync',
    summary: SUMMARIES.sync,
    details:
      'The folder holds calls.jsonl and, with --parts, transcripts.jsonl and scorecards.jsonl: a line of JSON per record. The last line of an id counts, and a deletion is a line with "deleted": true.\n' +
      'It follows the feed of changes if the gateway has one, else it reads all calls every --every. It may be ended at any moment, even by kill -9, and goes on from there. The key comes from EVALGATE_API_KEY or --key-file.',
    examples: [
      'evalgate sync copy --url http://127.0.0.1:8080',
      'evalgate sync copy --url https://api.example.com --key-file key.txt --parts transcript,scorecard',
      'evalgate sync copy --url https://api.example.com --key-file key.txt --once',
    ],
  })
    .addArgument(new Argument('<dir>', 'the folder of the copy; it is made if there is none'))
    .requiredOption('--url <url>', 'where the public API is, without /v2', parseUrl)
    .option('--key-file <file>', 'a file that holds the API key')
    .option(
      '--parts <parts>',
      `what to copy beside the calls: ${PARTS.join(',')}; nothing else unless it is given`,
      parseParts,
    )
    .option('--once', 'end when the copy is up to date')
    .addOption(
      new Option('--every <duration>', 'how often to read all calls, if there is no feed of changes or it is not all')
        .argParser(durationBetween(MIN_EVERY_MS, MAX_EVERY_MS))
        .default(60 * 60_000, '1h'),
    )
    .action(
      async (
        folder: string,
        options: Omit<SyncOptions, 'parts'> & Partial<Pick<SyncOptions, 'parts'>>,
        command: Command,
      ) => {
        const { keepCopy } = await import('./sync/index.ts');
        await keepCopy(command, folder, { ...options, parts: options.parts ?? [] });
      },
    );
}

function parseUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.pathname !== '/' || url.search !== '') {
    throw new InvalidArgumentError('Allowed: an address such as https://api.example.com, without /v2.');
  }
  return url.origin;
}

function parseParts(text: string): readonly Part[] {
  const given = text.split(',').map((part) => part.trim());
  const known = PARTS.filter((part) => given.includes(part));
  if (known.length !== new Set(given).size)
    throw new InvalidArgumentError(`Allowed: ${PARTS.join(', ')}, with commas.`);
  return known;
}
