/** A gateway that has had requests, outcomes and changes of every kind. */
import { request } from 'node:http';
import { vi } from 'vitest';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import {
  anEvaluation,
  aScorecard,
  aScoredCard,
  aTranscript,
  dealInsights,
  WORKSPACE_A,
} from '../../support/records.ts';

/** One answer of the admin listener. */
export interface Exchange {
  /** As the list of endpoints has it: `PATCH /api/keys/{keyId}`. */
  readonly route: string;
  readonly body: unknown;
  readonly status: number;
  readonly answer: unknown;
}

const READS = [
  `/v1/workspaces/${WORKSPACE_A}/reports?limit=5`,
  `/v1/workspaces/${WORKSPACE_A}/reports/ev_1`,
  `/v1/workspaces/${WORKSPACE_A}/reports/ev_1/scorecard`,
  `/v1/workspaces/${WORKSPACE_A}/reports/ev_1/deal-insights`,
  `/v1/workspaces/${WORKSPACE_A}/reports/ev_1/transcript`,
  '/v1/key',
  '/v2/calls?page=1',
  '/v2/calls/ev_1',
  '/v2/calls/ev_1/transcript',
  '/v2/calls/ev_1/scorecard',
  '/v2/scorecards/sc_1/rubric',
  '/v2/key',
];

export async function startBusyGateway(env: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
  const gateway = await startTestGateway({ env });
  gateway.store.put({
    evaluations: [anEvaluation(), anEvaluation({ _id: 'ev_2' })],
    transcripts: [aTranscript()],
    scoredCards: [aScoredCard()],
    dealInsights: [dealInsights()],
    scorecards: [aScorecard()],
  });
  const key = await gateway.issueKey({ perMinute: 1000 });
  const limited = await gateway.issueKey({ perMinute: 1 });
  const anywhere = { isUndocumented: true };
  // Hits, misses, validations and compressed answers.
  for (const headers of [{}, { 'if-none-match': '*' }, { 'accept-encoding': 'gzip' }]) {
    for (const path of READS) await gateway.get(path, { key, headers });
  }
  // Stale copies, and copies served because the store fails.
  gateway.clock.advance(2 * 60_000);
  await gateway.get('/v2/calls?page=1', { key });
  await vi.waitUntil(() => gateway.store.calls('list') >= 3);
  const restore = gateway.store.fail(503, { 'retry-after': '1' });
  gateway.clock.advance(50 * 60_000);
  await gateway.get('/v2/calls?page=1', { key });
  await gateway.get('/v2/calls/ev_9', { key });
  restore();
  const reset = gateway.store.resetConnections();
  await gateway.get('/v2/calls/ev_8', { key });
  reset();
  // Refusals of every kind.
  await gateway.get('/v2/calls/ev_none', { key });
  await gateway.get('/v2/calls?page=0', { key });
  await gateway.get('/v2/calls');
  await gateway.get('/v2/calls', { key: 'evg_wrong' });
  await gateway.get('/v2/calls', { key: 'unknown' });
  await gateway.get('/v1/workspaces/22222222-2222-4222-8222-222222222222/reports', { key });
  await gateway.get('/v2/calls', { key, method: 'POST' });
  await gateway.get('/nowhere', anywhere);
  for (let sent = 0; sent < 3; sent += 1) await gateway.get('/v2/calls', { key: limited });
  await gateway.raw('GET / HTTP/1.1\r\nno header\r\n\r\n');
  await abort(gateway, '/v2/calls/ev_2', key);
  // A record that cannot be published.
  gateway.store.evaluations.set('ev_broken', { ...anEvaluation({ _id: 'ev_broken' }), title: 7 });
  await gateway.get('/v2/calls?page=1&pageSize=7', { key });
  return gateway;
}

/** A client that goes away while the store is asked. */
async function abort(gateway: TestGateway, path: string, key: string): Promise<void> {
  const gate = gateway.store.hold();
  const before = gateway.store.calls();
  const sent = request(`${gateway.publicUrl}${path}`, { headers: { authorization: `Bearer ${key}` } });
  sent.on('error', () => undefined).end();
  await gateway.store.waitForCalls(before + 1);
  sent.destroy();
  gate.release();
}

/** Those that answer JSON lines. */
const LINES = ['/api/state', '/api/key-export'];

/** Asks the admin listener for everything, and changes everything that can be changed. */
export async function askEverything(gateway: TestGateway): Promise<readonly Exchange[]> {
  const exchanges: Exchange[] = [];
  const ask = async (method: string, path: string, body?: unknown, route = path): Promise<unknown> => {
    const { status, json, text } = await gateway.admin(method, path, body);
    const isLines = LINES.includes(path);
    const lines = isLines ? text.trimEnd().split('\n') : [];
    const answer = isLines ? lines.map((line): unknown => JSON.parse(line)) : (json ?? text);
    exchanges.push({ route: `${method} ${route.split('?')[0]}`, body, status, answer });
    return json;
  };
  const keys = '/api/keys/{keyId}';
  const ttl = '/api/cache/ttl/{class}';
  const look = async (): Promise<void> => {
    for (const path of [
      '/livez',
      '/readyz',
      '/openapi.json',
      '/api/whoami',
      '/api/config',
      '/api/audit',
      '/api/fleet',
      '/api/health',
      '/api/keys',
      '/api/keys?limit=1',
      '/api/key-use',
    ])
      await ask('GET', path);
    for (const part of ['', '/ttl', '/top', '/top?limit=1', '/advice', '/history', '/maintenance']) {
      await ask('GET', `/api/cache${part}`);
    }
    for (const path of ['/v2/calls/ev_1', '/v2/calls/ev_none', '/v2/calls?page=1', '/v2/key']) {
      await ask('GET', `/api/cache/explain?${new URLSearchParams({ path, workspace: WORKSPACE_A }).toString()}`);
    }
  };
  await look();
  const rights = { workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] };
  const wanted = { name: 'a', ...rights, perMinute: 5, perHour: 50, expiresAt: '2027-01-01T00:00:00.000Z' };
  await ask('POST', '/api/keys', wanted);
  const { keyId } = await gateway.issue();
  await ask('GET', `/api/keys/${keyId}`, undefined, keys);
  await ask('PATCH', `/api/keys/${keyId}`, { status: 'deprecated' }, keys);
  await ask('PATCH', `/api/keys/${keyId}`, { status: 'active' }, keys);
  await ask('PATCH', `/api/keys/${keyId}`, { ...wanted, status: 'active' }, keys);
  await ask('PATCH', `/api/keys/${keyId}`, { perMinute: null, perHour: null, expiresAt: null }, keys);
  await ask('POST', `/api/keys/${keyId}/rotate`, { overlap: '1h' }, `${keys}/rotate`);
  await ask('DELETE', `/api/keys/${keyId}`, undefined, keys);
  await ask('POST', `/api/keys/${keyId}/rotate`, {}, `${keys}/rotate`);
  const own = { keyId: 'k_1', hash: 'ab'.repeat(32), status: 'active', createdAt: '2026-01-01T00:00:00.000Z' };
  const rest = { expiresAt: '2027-01-01T00:00:00.000Z', limits: { perMinute: 5, perHour: 50 }, quotaId: 'q_1' };
  await ask('POST', '/api/keys/import', { keys: [{ ...own, name: 'a', ...rights, ...rest }], dryRun: false });
  await ask('PUT', '/api/cache/ttl/list', { fresh: '60s', stale: '10m', error: '2h' }, ttl);
  await ask('PUT', '/api/cache/ttl/list', { fresh: '90s', for: '1h' }, ttl);
  await ask('POST', '/api/cache/purge', { tags: [`workspace:${WORKSPACE_A}`], mode: 'soft', exact: true });
  await ask('POST', '/api/cache/purge', { tags: ['evaluation:ev_1'], mode: 'soft', dryRun: false });
  await ask('GET', '/api/cache/purge');
  await ask('POST', '/api/cache/erase', { evaluation: 'ev_1', gone: ['p_1'] });
  await ask('POST', '/api/cache/erase', { workspace: WORKSPACE_A });
  await ask('PUT', '/api/cache/maintenance', { for: '30m' });
  await ask('PUT', '/api/cache/maintenance', { until: '2026-01-15T13:30:00.000Z' });
  await ask('GET', '/api/changes');
  const changed = { evaluation: 'ev_1', workspace: WORKSPACE_A, kinds: ['evaluation'], created: true };
  await ask('POST', '/api/changes', { mode: 'soft', changes: [{ ...changed, etags: { evaluation: '"1"' } }] });
  await ask('GET', '/api/changes?after=another.0&limit=10');
  await ask('GET', '/api/state');
  await ask('GET', '/api/key-export');
  const end = '2026-01-15T13:30:00.000Z';
  const records = [
    { kind: 'key', ...own, name: 'a', ...rights, ...rest },
    { kind: 'time', class: 'rubric', name: 'fresh', ttl: '10m', until: end },
    { kind: 'maintenance', since: '2026-01-15T12:00:00.000Z', until: end, by: 'alice' },
    {
      kind: 'audit',
      id: 'a',
      at: rest.expiresAt,
      who: 'alice',
      action: 'key.edit',
      target: 'k_1',
      from: null,
      to: null,
    },
  ];
  await ask('POST', '/api/state/import', { records, dryRun: true });
  await look();
  await ask('DELETE', '/api/key-loss');
  await ask('DELETE', '/api/cache/maintenance');
  await ask('DELETE', '/api/cache/ttl/list', undefined, ttl);
  // Refused values, and the allowed ones.
  await ask('POST', '/api/keys', { unknown: 1 });
  await ask('PATCH', '/api/keys/k_1', { unknown: 1 }, keys);
  await ask('POST', '/api/keys/k_1/rotate', { unknown: 1 }, `${keys}/rotate`);
  await ask('POST', '/api/keys/import', { keys: [{ unknown: 1 }] });
  await ask('POST', '/api/state/import', { records: [{ kind: 'unknown' }] });
  await ask('PUT', '/api/cache/ttl/list', { unknown: '1s' }, ttl);
  await ask('PUT', '/api/cache/ttl/lists', { fresh: '1s' }, ttl);
  await ask('POST', '/api/cache/purge', { unknown: 1 });
  await ask('POST', '/api/cache/erase', { unknown: 1 });
  await ask('PUT', '/api/cache/maintenance', { unknown: 1 });
  await ask('GET', '/api/cache/explain?unknown=1');
  await ask('GET', '/api/cache/top?limit=0');
  await ask('GET', '/api/keys/none', undefined, keys);
  return exchanges;
}
