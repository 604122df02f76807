/** Looks whether a gateway runs and lets us in. */
import { z } from 'zod';
import { adminClient, adminTokenFrom } from '../admin-client.ts';
import { CliError } from '../errors.ts';
import type { Terminal } from '../terminal.ts';
import { type Check, fail, ok, skipped } from './check.ts';

/** A gateway that does not run is no fault: the doctor is asked before the first start, too. */
export async function checkAdmin(base: string, env: Terminal['env']): Promise<Check> {
  if (!(await isListening(base))) return skipped('admin', `no gateway runs: nothing answers at ${base}`);
  try {
    const { keys } = await adminClient(base, adminTokenFrom(env)).call({
      method: 'GET',
      path: '/api/keys',
      answer: z.object({ keys: z.array(z.unknown()) }),
    });
    return ok('admin', `a gateway runs at ${base} and knows ${keys.length} keys`);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    const [message = '', ...advice] = error.message.split('\n');
    return fail('admin', message, advice.join(' ') || 'Give the address of the admin listener with --admin URL.');
  }
}

async function isListening(base: string): Promise<boolean> {
  try {
    const response = await fetch(`${base}/livez`, { redirect: 'manual', signal: AbortSignal.timeout(5000) });
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  }
}
