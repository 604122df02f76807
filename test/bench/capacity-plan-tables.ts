/** The plan as tables: fleets of several sizes, and where each part comes to its end. Pure. */
import type { Table } from './gateway/case.ts';
import { type Coefficients, figures } from './capacity-coefficients.ts';
import { breaksTable, type Design } from './capacity-endings.ts';
import { cacheBytes, type Load, loadOf, type Scenario, stateBytes } from './capacity-plan.ts';
import { bytes, percent, short } from './capacity-units.ts';

export const RATES = [8000, 50_000, 200_000, 1_000_000] as const;
/** So busy is every core of the gateways and every Redis at most, so that two zones of three bear what three did. */
const BUSY = 0.5;
const GIGA = 1e9;
const DAY_SECONDS = 86_400;
const MOST_NODES = 64;
const SCRAPE_SECONDS = 15;

export const DESIGNS: readonly Design[] = [
  { title: '**A: 2,000 requests/s a process, any balancer**', perProcess: 2000, balancing: 'any' },
  { title: '**B: 4,000 requests/s a process, balanced by key**', perProcess: 4000, balancing: 'key' },
];

/** Of a cell: a size at which every part of B is far from its end. */
const CELL_RATE = 50_000;

export function planTables(c: Coefficients): readonly Table[] {
  return [...DESIGNS.map((design) => designTable(c, design)), cellsTable(c), breaksTable(c, DESIGNS)];
}

function cellsTable(c: Coefficients): Table {
  const cell: Scenario = { rate: CELL_RATE, perProcess: 4000, balancing: 'key', stateNodes: 1 };
  const load = loadOf(c, cell);
  const cells = RATES.map((rate) => Math.ceil(rate / CELL_RATE));
  const line = (what: string, textOf: (cells: number) => string): readonly string[] => [what, ...cells.map(textOf)];
  return {
    title: '**C: cells of 50,000 requests/s, each as in B**; each with what stands there for 50,000',
    head: ['requests/s', ...RATES.map((rate) => rate.toLocaleString('en'))],
    lines: [
      line('cells', String),
      line('processes, each with a core', (count) => `${count} × ${Math.ceil(load.gatewayCores / BUSY)}`),
      line('primaries for state, a replica for each beside', (count) => `${count} × ${primaries(c, cell)}`),
      line('Redis for the cache, each busy', (count) => `${count}, ${percent(load.cacheCores)}`),
      line('memory of the state, of a cell', () => bytes(stateBytes(c, CELL_RATE))),
    ],
  };
}

interface PlanRow {
  readonly what: string;
  readonly formula: string;
  readonly value: (load: Load, scenario: Scenario) => string;
}

function designTable(c: Coefficients, { title, perProcess, balancing }: Design): Table {
  const scenarios = RATES.map((rate): Scenario => ({ rate, perProcess, balancing, stateNodes: 1 }));
  return {
    title,
    head: ['requests/s', 'worked out as', ...RATES.map((rate) => rate.toLocaleString('en'))],
    lines: planRows(c).map(({ what, formula, value }) => [
      what,
      formula,
      ...scenarios.map((scenario) => value(loadOf(c, scenario), scenario)),
    ]),
  };
}

function planRows(c: Coefficients): readonly PlanRow[] {
  return [
    { what: 'keys', formula: 'R ÷ 0.833 (3,000 an hour)', value: ({ population }) => short(population.keys) },
    { what: 'processes N', formula: 'R ÷ r', value: ({ processes }) => short(processes) },
    {
      what: 'calls to the store/s F',
      formula: 'lists ÷ (30 s + lists ÷ reads/s), transcripts likewise with 1 h',
      value: ({ fills }) => short(fills),
    },
    {
      what: 'reads from Redis/s H',
      formula: 'answers ÷ freshness × (processes that read each while it is fresh − 1)',
      value: ({ redisHits }) => short(redisHits),
    },
    {
      what: 'cores of the gateways',
      formula:
        'R × (gatewayRequest + gatewayCall ÷ k) + H × gatewayHit + F × gatewayFill + N × (gatewayIdle + F × gatewayHear + N ÷ 2 s × gatewayMember)',
      value: ({ gatewayCores }) => short(gatewayCores),
    },
    {
      what: 'cores to have',
      formula: 'at most half busy: where it is more than N, have as many processes',
      value: ({ gatewayCores }) => short(gatewayCores / BUSY),
    },
    {
      what: 'each process busy',
      formula: 'cores ÷ N',
      value: ({ gatewayCores, processes }) => percent(gatewayCores / processes),
    },
    {
      what: 'memory tier to have, each process',
      formula: 'answers that it sees × memoryAnswer',
      value: ({ workingSetBytes }) => bytes(workingSetBytes),
    },
    {
      what: 'state Redis: rate limits',
      formula: 'R × (quotaCall ÷ k + quotaKey); k between keysOfCall at 2,000/s and keysOfBusyCall at 6,000/s',
      value: ({ state }) => percent(state.quotas),
    },
    {
      what: 'state Redis: look-ups of keys/s L',
      formula: 'forgotten × R + (1 − forgotten) × U; forgotten = 1 − 10,000 ÷ keys of a process',
      value: ({ lookups }) => short(lookups),
    },
    {
      what: 'state Redis: keys',
      formula: 'L × keyLookup + U × keyUse; U = keys × processes that see each in 30 s ÷ 30 s',
      value: ({ state }) => percent(state.keys),
    },
    {
      what: 'what-if messages/s W',
      formula: 'N × rounds/s × others that get any; rounds: 4/s, or r ÷ 512',
      value: ({ whatIfMessages }) => short(whatIfMessages),
    },
    { what: 'state Redis: what-if', formula: 'W × (publish + deliver)', value: ({ state }) => percent(state.whatIf) },
    {
      what: 'state Redis: heartbeats',
      formula: 'N ÷ 2 s × (beat + N × beatMember)',
      value: ({ state }) => percent(state.members),
    },
    { what: 'state Redis: the rest', formula: 'N × stateIdle', value: ({ state }) => percent(state.idle) },
    { what: '**state Redis, all**', formula: 'sum, of one thread', value: ({ state }) => percent(state.busiest) },
    {
      what: '**primaries of a state Cluster**, each at most half busy',
      formula:
        'the fewest n with limits (k = keysOfClusterCall) ÷ min(n, 16) + (W × (publish + deliver + (n − 1) × busNode) + rest) ÷ n + keys + heartbeats at most half',
      value: (_load, scenario) => primaries(c, scenario),
    },
    {
      what: 'held when a process comes or goes',
      formula: 'N × (beat + N × beatMember)',
      value: ({ newsMicros }) => `${figures(newsMicros / 1000)} ms`,
    },
    {
      what: 'memory of the state',
      formula: 'R × 3,600 × logEntryBytes + keys × (logBytes + keyBytes)',
      value: (_load, { rate }) => bytes(stateBytes(c, rate)),
    },
    {
      what: 'to its disk/s',
      formula: 'R × appendedBytes',
      value: (_load, { rate }) => bytes(rate * c.appendedBytes),
    },
    {
      what: 'network of the state/s, in and out',
      formula: 'R × stateInBytes, R × stateOutBytes',
      value: (_load, { rate }) => `${bytes(rate * c.stateInBytes)}, ${bytes(rate * c.stateOutBytes)}`,
    },
    {
      what: '**cache Redis**',
      formula: 'H × cacheHit + F × (cacheFill + publish + N × deliver) + N × cacheIdle, of one thread',
      value: ({ cacheCores }) => percent(cacheCores),
    },
    {
      what: 'of it, ends of flights',
      formula: 'F × (publish + N × deliver)',
      value: ({ flightCores }) => percent(flightCores),
    },
    {
      what: 'memory of the cache',
      formula: 'answers × cacheEntryBytes',
      value: (_load, { rate }) => bytes(cacheBytes(c, rate)),
    },
    {
      what: 'network of the cache/s, out',
      formula: 'H × cacheHitBytes',
      value: ({ redisHits }) => bytes(redisHits * c.cacheHitBytes),
    },
    {
      what: 'connections to each Redis',
      formula: '2 × N',
      value: ({ processes }) => short(2 * processes),
    },
    {
      what: 'network to consumers',
      formula: 'R × answerBytes',
      value: (_load, { rate }) => `${figures((8 * rate * c.answerBytes) / GIGA)} Gbit/s`,
    },
    {
      what: 'access log a day',
      formula: 'R × logLineBytes × 86,400',
      value: (_load, { rate }) => bytes(rate * c.logLineBytes * DAY_SECONDS),
    },
    {
      what: 'Prometheus: series, samples/s',
      formula: 'N × samples, every 15 s',
      value: ({ processes }) => `${short(processes * c.samples)}, ${short((processes * c.samples) / SCRAPE_SECONDS)}`,
    },
  ];
}

/** The fewest that do, as text; how busy the busiest still is where no number does. */
function primaries(c: Coefficients, scenario: Scenario): string {
  const busiestOf = (stateNodes: number): number => loadOf(c, { ...scenario, stateNodes }).state.busiest;
  if (busiestOf(1) <= BUSY) return '1';
  const counts = Array.from({ length: MOST_NODES - 2 }, (_, index) => index + 3);
  const enough = counts.find((count) => busiestOf(count) <= BUSY);
  if (enough !== undefined) return String(enough);
  const least = Math.min(...counts.map(busiestOf));
  return `none does: ${percent(least)} at best`;
}
