/** The HTTP caches that docs/api.md names keep answers, revalidate them, and keep those of two keys apart. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { type Check, TOOLS, type World } from './world.ts';

const FRESH_MS = 10_000;
/** undici keeps a stale copy only for as long as it was fresh. */
const STALE_AFTER_MS = 12_000;
const foundSchema = z.record(z.string(), z.object({ sent: z.array(z.string()), isSame: z.boolean() }));
const MISS = '200';
/** The requests that reach the gateway for reads with the first key twice, again once the copy is stale, and with another key. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  'undici, private': [MISS, '', 'If-None-Match 304', MISS],
  'undici, shared': [MISS, MISS, MISS, MISS],
  // Its http-cache-semantics revalidates each time what must be revalidated once it is stale.
  'got, private': [MISS, 'If-None-Match 304', 'If-None-Match 304', MISS],
  'got, shared': [MISS, MISS, MISS, MISS],
};

export async function checkCaches({ gateway, target }: World): Promise<readonly Check[]> {
  const { baseUrl, callId, key, workspaceId } = target;
  await gateway.administer('PUT', '/api/cache/ttl/evaluation', { fresh: `${FRESH_MS}ms` });
  const keys = [key, await gateway.issueKey({ workspaceIds: [workspaceId] })];
  const asked = JSON.stringify({ baseUrl, path: `/v2/calls/${callId}`, keys, freshMs: STALE_AFTER_MS });
  const { stdout } = await promisify(execFile)(process.execPath, [join(TOOLS, 'caches.js'), asked]);
  await gateway.administer('DELETE', '/api/cache/ttl/evaluation');
  return Object.entries(foundSchema.parse(JSON.parse(stdout))).map(([name, { sent, isSame }]) => {
    const expected = shown(EXPECTED[name] ?? []);
    const measured = shown(sent);
    return {
      name: `cache of ${name}`,
      measured,
      faults: [...(measured === expected ? [] : [`expected: ${expected}`]), ...(isSame ? [] : ['bodies differ'])],
    };
  });
}

function shown(sent: readonly string[]): string {
  return sent.map((one) => (one === '' ? 'nothing' : one)).join('; ');
}
