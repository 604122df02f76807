import { createServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createAudit } from '../../../src/admin/audit.ts';
import { Pulse } from '../../../src/admin/dashboard/pulse.ts';
import { startAdminServer } from '../../../src/admin/server.ts';
import type { AdminOptions } from '../../../src/admin/app.ts';
import type { AdminToken } from '../../../src/admin/tokens.ts';
import type { ApiKey, KeyRegistry } from '../../../src/keys/key.ts';
import { createRequestLimiter } from '../../../src/keys/request-limiter.ts';
import { createMemoryRegistry } from '../../../src/keys/memory-registry.ts';
import { type Listener, StartError } from '../../../src/server.ts';
import { listenOnLoopback } from '../../support/loopback.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { createInsight } from '../../support/insight.ts';
import { createCacheRig } from './cache-rig.ts';
import { send } from './harness.ts';

const clock = new ManualClock();
let server: Listener | undefined;
afterEach(async () => {
  await server?.close(0);
  server = undefined;
});

async function start(
  address: { readonly host: string; readonly port: number },
  tokens: readonly AdminToken[] = [],
  registry: KeyRegistry = createMemoryRegistry({ clock }),
): Promise<Listener> {
  const options: AdminOptions = {
    tokens,
    wrongTokens: createRequestLimiter({ name: 'admin-tokens', points: 60, windowSeconds: 60, redis: null }),
    addressOf: () => '127.0.0.1',
    allowedHosts: [],
    isReady: () => ({ status: 'ready', dependencies: [] }),
    registry,
    cache: createCacheRig(clock).controls,
    insight: createInsight(clock),
    pulse: new Pulse(clock),
    config: () => ({}),
    metrics: { contentType: 'text/plain', render: async () => '' },
    audit: createAudit({ clock, capacity: 1, sink: () => {} }),
    clock,
    log: { info: () => {}, warn: () => {}, error: () => {} },
  };
  server = await startAdminServer(options, address);
  return server;
}

describe('listening', () => {
  test.each(['0.0.0.0', '::', '10.0.0.7', 'admin.internal', ''])('on %j is refused without a token', async (host) => {
    const refusal = start({ host, port: 0 });
    await expect(refusal).rejects.toBeInstanceOf(StartError);
    await expect(refusal).rejects.toThrow(
      `The admin listener would be open to anyone who reaches ${host === '' ? 'this machine' : host}: that is no loopback address and ADMIN_TOKEN is not set. Set ADMIN_TOKEN, or set ADMIN_HOST to 127.0.0.1.`,
    );
  });

  test.each(['127.0.0.1', '127.0.0.2', 'localhost'])('on %s needs no token', async (host) => {
    const { port } = await start({ host, port: 0 });
    expect(port).toBeGreaterThan(0);
  });

  test('elsewhere is possible with a token, and then demands it', async () => {
    const { port } = await start({ host: '0.0.0.0', port: 0 }, [{ name: 'ops', token: 't' }]);
    expect((await send(port, 'GET', '/api/keys')).status).toBe(401);
    expect((await send(port, 'GET', '/api/keys', { headers: { authorization: 'Bearer t' } })).status).toBe(200);
  });

  test('on a port that is taken rejects with the reason', async () => {
    const other = await listenOnLoopback(createServer());
    await expect(start({ host: '127.0.0.1', port: other.port })).rejects.toThrow('is taken');
    await other.close();
  });
});

describe('closing', () => {
  test('what is closed may be closed again', async () => {
    const admin = await start({ host: '127.0.0.1', port: 0 });
    const { port } = admin;
    await admin.close(1000);
    await expect(admin.close(1000)).resolves.toBeUndefined();
    await expect(send(port, 'GET', '/livez')).rejects.toThrow('ECONNREFUSED');
  });

  test('lets a request in flight finish, on a connection that is kept alive, and ends with it', async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<readonly ApiKey[]>();
    const registry = Object.assign(createMemoryRegistry({ clock }), {
      list: () => {
        asked.resolve();
        return answer.promise;
      },
    });
    const admin = await start({ host: '127.0.0.1', port: 0 }, [], registry);
    const { port } = admin;
    // fetch keeps its connections alive.
    const pending = fetch(`http://127.0.0.1:${port}/api/keys`);
    await asked.promise;
    const startedMs = performance.now();
    const closed = admin.close(5000);
    // Those that had come before are let in first.
    const outcome = (): Promise<string> => send(port, 'GET', '/livez').then(() => 'answered', String);
    await expect.poll(outcome).toContain('ECONNREFUSED');
    answer.resolve([]);
    const response = await pending;
    expect(await response.json()).toEqual({ keys: [] });
    await closed;
    // Neither the keep-alive time nor the grace, of 5 s each, is waited for.
    expect(performance.now() - startedMs).toBeLessThan(2500);
  });
});
