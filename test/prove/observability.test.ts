/** The real Prometheus scrapes real gateways, with the rules that are deployed, and answers what the dashboard asks. */
import { onTestFinished, test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { GatewayProcess, programOnPath } from '../support/process.ts';
import { type LoadedRule, Prometheus } from '../support/prometheus.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { createStoreServer } from '../support/store-server.ts';
import { readDashboard, readRules } from '../support/deploy-files.ts';
import { type Bar, prove, skipLoudly } from './bar.ts';

const TOKEN = 'metrics-token-of-a-test';
/** These have no samples here: no record is malformed, no call is repeated or held back ... */
const DID_NOT_HAPPEN =
  /_(?:left_out_total|retries_total|calls_refused_total|lease_wait_seconds_bucket|unreadable_requests_total|command_failures_total)\b/;
/** A machine that does other things too is slow, and that is told as it should be. */
const OF_THE_MACHINE = /Slow|EventLoopBusy/;
const ASKED = 40;
const ROUNDS = 10;

test('Prometheus', async (context) => {
  const program = programOnPath('prometheus');
  if (program === null) skipLoudly(context, 'there is no prometheus on the PATH');
  const gateways = await startGateways();
  const targets = gateways.map(({ adminUrl }) => new URL(adminUrl).host);
  const prometheus = await Prometheus.start(program, targets, TOKEN);
  const isUp = async (): Promise<boolean> => sumOf(await prometheus.query('up{job="evalgate"}')) === gateways.length;
  await prometheus.until('both gateways are scraped', isUp);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const gateway of gateways) await ask(gateway);
    await prometheus.until('it is scraped once more', scrapedAgain(prometheus));
  }
  const bars = [await rulesBar(prometheus), await dashboardBar(prometheus)];
  await gateways[1]?.kill();
  prove(context, ...bars, await downBar(prometheus));
});

/** One with two workers and one without, on one Redis; both demand a token. */
async function startGateways(): Promise<readonly GatewayProcess[]> {
  // Without a limit of memory it would not be well.
  const redis = await forTest(startRedis({ config: ['maxmemory 512mb'] }));
  const store = await forTest(createStoreServer());
  store.put({ evaluations: [anEvaluation()] });
  const start = async (workers: string): Promise<GatewayProcess> => {
    const env = {
      REDIS_URL: redis.url,
      UPSTREAM_URL: store.url,
      UPSTREAM_TOKEN: store.token,
      ADMIN_TOKEN: `prometheus=${TOKEN}`,
      CACHE_LIST_FRESH: '1s',
      WORKERS: workers,
    };
    const gateway = await GatewayProcess.start({ env });
    onTestFinished(() => gateway.kill());
    return gateway;
  };
  return [await start('2'), await start('1')];
}

/** Reads that hit, miss and are refused for each reason that a caller can give. */
async function ask(gateway: GatewayProcess): Promise<void> {
  const key = await gateway.issueKey();
  const short = await gateway.issueKey({ perMinute: 1 });
  for (let count = 0; count < ASKED; count += 1) {
    await gateway.status(`/v2/calls?page=${(count % 4) + 1}`, key);
    await gateway.status(`/v1/workspaces/${WORKSPACE_A}/reports/${EVALUATION_ID}`, key);
  }
  await gateway.status('/v2/calls/none', key);
  await gateway.status('/v2/calls', short);
  await gateway.status('/v2/calls', short);
  await gateway.status('/v2/calls', 'no-key-of-ours');
}

function scrapedAgain(prometheus: Prometheus): () => Promise<boolean> {
  const beganSeconds = Date.now() / 1000;
  return async () => {
    const scrapes = await prometheus.query('timestamp(up{job="evalgate"})');
    return scrapes.every(({ value }) => value > beganSeconds + 1);
  };
}

/** Once each has been looked at. */
async function rulesBar(prometheus: Prometheus): Promise<Bar> {
  await prometheus.until('every rule has been looked at', async () =>
    (await prometheus.rules()).every(({ health }) => health !== 'unknown'),
  );
  const rules = await prometheus.rules();
  const bad = rules.filter(({ health }) => health !== 'ok');
  const active = rules.filter(isActive);
  return {
    name: 'Prometheus, rules',
    bar: `all ${readRules().length} rules are loaded and looked at without an error; none is pending or fires at well gateways, but for those on how fast the machine is`,
    measured: `${rules.length} rules, ${bad.length} with an error${listed(bad)}, ${active.length} pending or firing${listed(active)}`,
    ok: rules.length === readRules().length && bad.length === 0 && active.length === 0,
  };
}

async function dashboardBar(prometheus: Prometheus): Promise<Bar> {
  const queries = readDashboard().panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  const empty: { readonly name: string }[] = [];
  for (const expr of queries) {
    const asked = expr.replaceAll('$__rate_interval', '30s').replaceAll(/"\$(?:job|instance)"/g, '".*"');
    // Throws if Prometheus doesn't take it.
    const samples = await prometheus.query(asked);
    if (samples.length === 0 && !DID_NOT_HAPPEN.test(expr)) empty.push({ name: expr });
  }
  return {
    name: 'Prometheus, dashboard',
    bar: 'every query of the dashboard is taken without a warning, and has samples unless it is of what did not happen',
    measured: `${queries.length} queries, ${empty.length} without samples${listed(empty)}`,
    ok: queries.length > 0 && empty.length === 0,
  };
}

async function downBar(prometheus: Prometheus): Promise<Bar> {
  const begun = async (): Promise<readonly string[]> =>
    (await prometheus.rules()).filter(isActive).map(({ name }) => name);
  await prometheus.until('an alert begins', async () => (await begun()).length > 0);
  const names = await begun();
  return {
    name: 'Prometheus, a gateway killed',
    bar: 'EvalgateInstanceDown begins to wait, and no other alert but for those on how fast the machine is',
    measured: names.join(', '),
    ok: names.join() === 'EvalgateInstanceDown',
  };
}

function isActive({ name, state }: LoadedRule): boolean {
  return (state === 'pending' || state === 'firing') && !OF_THE_MACHINE.test(name);
}

function listed(rules: readonly { readonly name: string }[]): string {
  return rules.length === 0 ? '' : `: ${rules.map(({ name }) => name).join('; ')}`;
}

function sumOf(samples: readonly { readonly value: number }[]): number {
  return samples.reduce((sum, { value }) => sum + value, 0);
}
