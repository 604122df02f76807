/** `evalgate sample-upstream` as a process of its own, for what must not share the test's event loop. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { z } from 'zod';

const LAUNCHER = join(import.meta.dirname, '../../src/cli/evalgate.js');
const announcedSchema = z.object({ url: z.string(), token: z.string(), workspaceIds: z.array(z.string()) });

export type StoreProcess = z.output<typeof announcedSchema> & {
  /** Resolves once it has ended. */
  kill(): Promise<void>;
};

/** Starts it on a free port, without latency unless an option says otherwise: `['--latency', '120', '--capacity', '50']`. */
export async function startStoreProcess(options: readonly string[] = []): Promise<StoreProcess> {
  const args = ['sample-upstream', '--port', '0', '--latency', '0', ...options, '--json'];
  const child = spawn(process.execPath, [LAUNCHER, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  let text = '';
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    if (text.endsWith('}\n')) break;
  }
  return {
    ...announcedSchema.parse(JSON.parse(text)),
    kill: async () => {
      child.kill('SIGTERM');
      await exit;
    },
  };
}
