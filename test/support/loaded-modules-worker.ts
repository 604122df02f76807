/**
 * A gateway that answers a request and ends, and then says which modules of OpenTelemetry it has loaded: a JSON list of
 * addresses on standard output. Configured by the environment.
 */
import { registerHooks } from 'node:module';

const loaded: string[] = [];
registerHooks({
  load: (url, context, next) => {
    if (url.includes('@opentelemetry')) loaded.push(url);
    return next(url, context);
  },
});

// Only now, so that the hook sees everything.
const { loadConfig } = await import('../../src/config/load.ts');
const { startGateway } = await import('../../src/gateway.ts');
const { createLogger } = await import('../../src/log/logger.ts');
const gateway = await startGateway(loadConfig({ env: process.env }), { logger: createLogger({ level: 'silent' }) });
await (await fetch(`${gateway.publicUrl}/v1/key`)).text();
await gateway.stop(0);
process.stdout.write(JSON.stringify(loaded));
