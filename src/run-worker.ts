/** The composition root of a worker: a gateway that is started, reloaded and drained on the first process's word. */
import type { Member } from './cluster/member.ts';
import type { Environment } from './config/environment.ts';
import { type KeptFiles, type LoadedConfig, loadKept } from './config/load.ts';
import { type Gateway, startGateway, type WorkerOptions } from './gateway.ts';
import { createLogger } from './log/logger.ts';
import { terminalFormat } from './log/terminal.ts';
import { StartError } from './server.ts';
import { readReloadPayload, readStartPayload } from './worker-payload.ts';

/** Resolves when the gateway has stopped, with the status to exit with. */
export async function runWorker(member: Member, ownEnv: Environment): Promise<number> {
  // A terminal and a service manager signal all processes at once; it is the first one that says what is to be done.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  const { env: overrides, files, reloaded, sample } = readStartPayload(await member.payload());
  const load = (from: KeptFiles): LoadedConfig => loadKept({ ...ownEnv, ...overrides }, from);
  const loaded = load(files);
  const gateway = await start(loaded, { siblings: member, sample });
  if ('reason' in gateway) {
    await member.failed(gateway.reason);
    return 1;
  }
  if (reloaded !== null) gateway.reload(load(reloaded));
  member.onReload((payload) => gateway.reload(load(readReloadPayload(payload))));
  member.onReloadFailed(() => gateway.reloadFailed());
  member.ready({ publicUrl: gateway.publicUrl, adminUrl: gateway.adminUrl });
  await gateway.stop(await member.drain);
  return 0;
}

/** Or why it can't start as it is configured. */
async function start(loaded: LoadedConfig, worker: WorkerOptions): Promise<Gateway | { readonly reason: string }> {
  const logger = createLogger({ level: loaded.config.log.level, format: await terminalFormat() });
  try {
    return await startGateway(loaded, { logger, worker });
  } catch (error) {
    if (error instanceof StartError) return { reason: error.message };
    throw error;
  }
}
