/** `evalgate serve`: the gateway; what `npm start` runs. */
import cluster from 'node:cluster';
import type { Command } from 'commander';
import { demoWarning } from '../config/environment.ts';
import { ConfigError } from '../config/errors.ts';
import { loadConfig, type LoadedConfig } from '../config/load.ts';
import { SecretFiles, secretsInFiles } from '../config/secret-files.ts';
import type { Gateway } from '../gateway.ts';
import { type Logger, openProcessLog, type ProcessLog } from '../log/logger.ts';
import { CliError, COMMAND, print } from './command.ts';
import { write } from './output.ts';

type Signal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';

const DEFAULT_ADMIN_PORT = 8081;
const NO_STORE =
  'UPSTREAM_URL is not set: set it to the address of your evaluation store, or try the bundled sample store with `evalgate serve --demo` (in a checkout: `npm start`).';

type Config = LoadedConfig['config'];

/** One gateway in this process, or several in processes of their own. */
type Running = Pick<
  Gateway,
  'publicUrl' | 'adminUrl' | 'demo' | 'sample' | 'reload' | 'reloadFailed' | 'onSecrets' | 'stop'
>;

/** Files of secrets are read so often: a change is in force within twice as long. */
const LOOK_AT_SECRETS_EVERY_MS = 5000;

/**
 * Resolves when the gateway has stopped, on SIGTERM or SIGINT, or because the terminal that it runs at is gone. A signal
 * drains it by `Gateway.stop` (gateway.ts, which says in what order). With WORKERS the supervisor asks each worker to do
 * so, since workers ignore the signal itself, and kills those that take too long.
 */
export async function serve(command: Command, isDemo: boolean): Promise<void> {
  if (cluster.isWorker) process.exit(await serveAsWorker());
  // Registered first: a signal that comes while the gateway starts must not be lost.
  const isAtTerminal = process.stdin.isTTY || process.stdout.isTTY;
  const stopped = stopSignal(isAtTerminal);
  const loaded = loadConfig({ env: process.env });
  const { config } = loaded;
  const log = await openProcessLog(config.log.level);
  const { logger } = log;
  // A gateway that nobody hears still serves.
  process.stdout.on('error', (error) => logger.warn({ err: error }, 'standard output takes nothing'));
  for (const warning of loaded.warnings) logger.warn(warning);
  if (config.upstream.url === null) {
    // A gateway that lost its UPSTREAM_URL must not serve made-up records.
    if (!isDemo) throw new CliError(NO_STORE);
    const warning = demoWarning(process.env);
    if (warning !== null) logger.warn(warning);
  }
  const secrets = new SecretFiles({ env: process.env, loaded });
  const running =
    config.server.workers > 1
      ? await startSeveral(loaded, { log, secrets, stopped })
      : await startOne(loaded, log, secrets);
  if (running === null) return log.flush();
  const { publicUrl, adminUrl, demo } = running;
  print(command, { publicUrl, adminUrl, demo }, announcement(running, config));
  const stopAnnouncing = await announceChanges(running, config, logger);
  secrets.listen((look) => {
    if (look.changed.length > 0) logger.info({ secrets: look.changed }, 'secrets changed');
    running.onSecrets(look);
  });
  if (secretsInFiles(loaded).length > 0) setInterval(() => secrets.look(), LOOK_AT_SECRETS_EVERY_MS).unref();
  if (!isAtTerminal) process.on('SIGHUP', () => reload(running, secrets, logger));
  const signal = await stopped;
  logger.info({ signal }, 'stopping');
  stopAnnouncing();
  await running.stop(delayMs(signal, loaded));
  logger.info('stopped');
  await log.flush();
}

/** Lets the sample store of a demo change records, and announce each change, if the gateway is to have the feed of changes. */
async function announceChanges(
  { sample, adminUrl }: Running,
  { admin, changes }: Config,
  logger: Logger,
): Promise<() => void> {
  if (sample === null || !changes.announced) return () => undefined;
  const { Announcer } = await import('./announcer.ts');
  const announcer = new Announcer({
    url: adminUrl,
    secret: changes.secrets[0] ?? null,
    token: admin.tokens[0]?.token ?? null,
    onRefused: (status, text) => logger.warn({ status, text }, 'the sample store may not announce its changes'),
  });
  sample.change((edit) => announcer.announce(edit));
  return () => announcer.close();
}

/** Resolves with the exit status. A worker has to call exit(): its connection to the first process keeps it alive. */
async function serveAsWorker(): Promise<number> {
  try {
    const { runWorker } = await import('../cluster/worker.ts');
    return await runWorker(process.env);
  } catch (error) {
    write('stderr', `${error instanceof Error ? error.stack : String(error)}\n`);
    return 1;
  }
}

async function startOne(loaded: LoadedConfig, log: ProcessLog, secrets: SecretFiles): Promise<Running> {
  // Loaded here: a process that only supervises workers does without it.
  const { startGateway } = await import('../gateway.ts');
  return startGateway(loaded, { ...log, lookAtSecrets: async () => secrets.look(), isStoreLookedFor: true });
}

interface Starting {
  readonly log: ProcessLog;
  readonly secrets: SecretFiles;
  readonly stopped: Promise<Signal>;
}

/** Null if the signal came before all were ready; they have ended then. */
async function startSeveral(loaded: LoadedConfig, { log, secrets, stopped }: Starting): Promise<Running | null> {
  const { Supervisor } = await import('../cluster/supervisor.ts');
  const supervisor = new Supervisor(loaded, log, secrets);
  const starting = supervisor.start();
  const first = await Promise.race([starting, stopped]);
  // Those that run already are drained.
  if (typeof first === 'string') await supervisor.stop(delayMs(first, loaded));
  return (await starting) ? supervisor : null;
}

/** How long requests are accepted after the signal, in milliseconds. */
function delayMs(signal: Signal, { config }: LoadedConfig): number {
  return signal === 'SIGINT' ? 0 : config.server.drainDelayMs;
}

/**
 * SIGHUP ends a gateway that was started at a terminal: the terminal is gone, and the gateway must not outlive it. The
 * handlers stay: a repeated signal while draining is ignored.
 */
function stopSignal(isAtTerminal: boolean): Promise<Signal> {
  const signals = ['SIGTERM', 'SIGINT', ...(isAtTerminal ? (['SIGHUP'] as const) : [])] as const;
  return new Promise((resolve) => {
    for (const signal of signals) process.on(signal, () => resolve(signal));
  });
}

/** Reads secrets and configuration again; if one is invalid, the old one stays in force. */
function reload(running: Running, secrets: SecretFiles, logger: Logger): void {
  secrets.look();
  try {
    const { loaded, changed } = secrets.readAgain();
    for (const warning of loaded.warnings) logger.warn(warning);
    const needRestart = running.reload(loaded);
    if (changed.length > 0) running.onSecrets({ loaded: null, changed, faults: secrets.faults });
    logger.info({ file: loaded.file }, 'configuration reloaded');
    if (needRestart.length > 0) logger.warn({ settings: needRestart }, 'changed settings that need a restart');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    running.reloadFailed(error.faults);
    logger.error({ faults: error.faults }, 'the new configuration is invalid; the old one stays in force');
  }
}

function announcement({ publicUrl, adminUrl, demo }: Running, { admin, changes, redis }: Config): string {
  const addresses = [`API     ${publicUrl}/v1 and ${publicUrl}/v2`, `Docs    ${publicUrl}/docs`, `Admin   ${adminUrl}`];
  if (demo === null) {
    const at = admin.port === DEFAULT_ADMIN_PORT ? '' : ` --admin ${adminUrl}`;
    return [
      ...addresses,
      '',
      'Create a key with the id of a workspace of your store:',
      `  ${COMMAND} keys create --name "First key" --workspace UUID --scope reports.read calls.read coaching.read${at}`,
      ...(redis.url === null ? ['Without REDIS_URL keys are held by this process and end with it.'] : []),
    ].join('\n');
  }
  return [
    'evalgate is running in front of its bundled sample store.',
    '',
    ...addresses,
    `Keys    ${demo.v1Key} (v1)`,
    `        ${demo.v2Key} (v2)`,
    '',
    'One line for each endpoint:',
    '',
    ...demo.curlLines,
    ...(changes.announced
      ? [
          '',
          'The store changes a record every second, and announces it:',
          '',
          `curl -H 'Authorization: Bearer ${demo.v2Key}' '${publicUrl}/v2/changes'`,
        ]
      : []),
  ].join('\n');
}
