/** `evalgate serve`: the gateway; what `npm start` runs. */
import type { Command } from 'commander';
import { ConfigError } from '../config/errors.ts';
import { type LoadedConfig, loadConfig } from '../config/load.ts';
import type { DemoAnnouncement } from '../demo.ts';
import type { Gateway } from '../gateway.ts';
import { createLogger, type Logger } from '../log/logger.ts';
import { answer, makeCommand } from './command.ts';
import type { Terminal } from './terminal.ts';

export function serveCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'serve',
      summary: 'run the gateway',
      details: 'Without UPSTREAM_URL it runs in front of the bundled sample store and prints keys to try it with.',
      examples: [
        'evalgate serve',
        'UPSTREAM_URL=https://store.example UPSTREAM_TOKEN_FILE=/run/secrets/store evalgate serve',
      ],
    },
    terminal,
  );
  return command.action(() => serve(command, terminal));
}

/** Resolves when the gateway has stopped, on SIGTERM or SIGINT. */
async function serve(command: Command, terminal: Terminal): Promise<void> {
  // From the first moment on: a signal that comes while the gateway starts must not be lost.
  const stopped = stopSignal();
  const loaded = loadConfig({ env: terminal.env });
  const logger = createLogger({ level: loaded.config.log.level });
  warn(logger, loaded);
  // Only this command needs the whole gateway; the others start faster without.
  const { startGateway } = await import('../gateway.ts');
  const gateway = await startGateway(loaded, { logger });
  const { publicUrl, adminUrl, demo } = gateway;
  answer(terminal, command, { document: { publicUrl, adminUrl, demo }, text: announcement(publicUrl, adminUrl, demo) });
  process.on('SIGHUP', () => reload(gateway, terminal, logger));
  const signal = await stopped;
  logger.info({ signal }, 'stopping');
  await gateway.stop(signal === 'SIGTERM' ? loaded.config.server.drainDelayMs : 0);
  logger.info('stopped');
}

/** The handlers stay: a repeated signal while draining is ignored. */
function stopSignal(): Promise<'SIGTERM' | 'SIGINT'> {
  return new Promise((resolve) => {
    process.on('SIGTERM', () => resolve('SIGTERM'));
    process.on('SIGINT', () => resolve('SIGINT'));
  });
}

/** Reads the configuration again; where it is invalid, the old one stays in force. */
function reload(gateway: Gateway, terminal: Terminal, logger: Logger): void {
  try {
    const loaded = loadConfig({ env: terminal.env });
    warn(logger, loaded);
    const needRestart = gateway.reload(loaded);
    logger.info({ file: loaded.file }, 'configuration reloaded');
    if (needRestart.length > 0) logger.warn({ settings: needRestart }, 'changed settings that need a restart');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    logger.error({ faults: error.faults }, 'the new configuration is invalid; the old one stays in force');
  }
}

function warn(logger: Logger, { warnings }: LoadedConfig): void {
  for (const warning of warnings) logger.warn(warning);
}

function announcement(publicUrl: string, adminUrl: string, demo: DemoAnnouncement | null): string {
  const addresses = [`API     ${publicUrl}/v1 and ${publicUrl}/v2`, `Docs    ${publicUrl}/docs`, `Admin   ${adminUrl}`];
  if (demo === null) return addresses.join('\n');
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
  ].join('\n');
}
