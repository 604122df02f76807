import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { createPublicApp } from '../../../src/http/app.ts';
import { HeadResponse } from '../../../src/http/head.ts';
import type { RequestReport } from '../../../src/http/layers/request-context.ts';
import { createMemoryQuota } from '../../../src/quota/memory-quota.ts';
import { createRig } from '../../support/cache-rig.ts';
import { listenOnLoopback } from '../../support/loopback.ts';
import { ManualClock } from '../../support/manual-clock.ts';

test('an answer that cannot be sent is told, ends its connection and keeps no place', async () => {
  const clock = new ManualClock();
  const failure = new Error('not now');
  const broken: unknown[] = [];
  const reports: RequestReport[] = [];
  let isBroken = true;
  const handler = createPublicApp({
    clock,
    reader: createRig().reader,
    authenticator: { authenticate: () => ({ kind: 'unauthenticated', reason: 'missing', retryAfterSeconds: null }) },
    quota: createMemoryQuota({ clock }),
    defaultLimits: () => ({ perMinute: 1, perHour: 1 }),
    addressOf: () => '127.0.0.1',
    docs: async () => null,
    isDraining: () => {
      if (isBroken) throw failure;
      return false;
    },
    maxInFlight: 1,
    hooks: {
      onRequest: (report) => reports.push(report),
      onAuthenticationRefused: () => {},
      onQuotaRefused: () => {},
      onBroken: (error) => broken.push(error),
    },
  });
  const server = await listenOnLoopback(
    createServer({ ServerResponse: HeadResponse }, (request, response) => void handler(request, response)),
  );
  try {
    await expect(fetch(`${server.url}/nowhere`)).rejects.toThrow('fetch failed');
    expect(broken).toEqual([failure]);
    expect(reports).toMatchObject([{ surface: 'other', status: 499, aborted: true }]);
    isBroken = false;
    expect((await fetch(`${server.url}/nowhere`)).status).toBe(404);
    expect(broken).toHaveLength(1);
  } finally {
    await server.close();
  }
});
