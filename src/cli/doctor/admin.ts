/** Looks whether a gateway runs and lets us in. */
import { z } from 'zod';
import { ADDRESS_ADVICE, AdminCallError, adminClient, adminTokenFrom } from '../admin-client.ts';
import { CliError } from '../errors.ts';
import type { Terminal } from '../terminal.ts';
import { type Check, fail, ok, skipped } from './check.ts';

/** A gateway that does not run is no fault: the doctor is asked before the first start, too. */
export async function checkAdmin(base: string, env: Terminal['env']): Promise<Check> {
  if (!(await isListening(base))) return skipped('admin', `no gateway runs: nothing answers at ${base}`);
  try {
    const { keys, nextCursor } = await adminClient(base, adminTokenFrom(env)).call({
      method: 'GET',
      path: '/api/keys?limit=1000',
      answer: z.object({ keys: z.array(z.unknown()), nextCursor: z.string().nullish() }),
    });
    return ok(
      'admin',
      `a gateway runs at ${base} and knows ${keys.length}${typeof nextCursor === 'string' ? ' and more' : ''} keys`,
    );
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    if (!(error instanceof AdminCallError)) return fail('admin', error.message, null);
    return fail('admin', error.finding, error.advice ?? adviceFor(error.status));
  }
}

/** Where the answer itself has none. A listener without keys is another one of the gateway's. */
function adviceFor(status: number | null): string | null {
  if (status !== null && status >= 500) return 'See /readyz there, and the redis lines above.';
  return status === 404 ? ADDRESS_ADVICE : null;
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
