/** Where each part of a fleet comes to its end, alone. Pure. */
import type { Table } from './gateway/case.ts';
import type { Coefficients } from './capacity-coefficients.ts';
import {
  type Balancing,
  breaksAt,
  type Load,
  loadOf,
  QUOTA_BUCKETS,
  QUOTA_WAIT_MICROS,
  REMEMBERED_KEYS,
  stateBytes,
} from './capacity-plan.ts';
import { short } from './capacity-units.ts';

/** A way to build a fleet. */
export interface Design {
  readonly title: string;
  readonly perProcess: number;
  readonly balancing: Balancing;
}

/** 10 Gbit/s. */
const LINK_BYTES = 1.25e9;
const MOST_CONNECTIONS = 10_000;
const ISSUED_HASHES = 250_000;
const FALLBACK_LOGS = 20_000;
const STATE_MEMORY_BYTES = 64e9;
const DISK_BYTES = 200e6;

interface Ending {
  readonly part: string;
  readonly bound: string;
  /** Of what there is, the part that is used; 1 is all of it. */
  readonly use: (load: Load, rate: number) => number;
}

export function breaksTable(c: Coefficients, designs: readonly Design[]): Table {
  const found = endings(c).map(({ part, bound, use }) => {
    const rates = designs.map(({ perProcess, balancing }) =>
      breaksAt((rate) => use(loadOf(c, { rate, perProcess, balancing, stateNodes: 1 }), rate)),
    );
    return { part, bound, rates };
  });
  return {
    title: '**Where each part ends**, alone and used up whole, in the order of A: requests/s (processes)',
    head: ['part', 'its end', 'A', 'B'],
    lines: found
      .toSorted((a, b) => firstOf(a.rates) - firstOf(b.rates))
      .map(({ part, bound, rates }) => [
        part,
        bound,
        ...rates.map((rate, index) => ended(rate, designs[index]?.perProcess ?? 1)),
      ]),
  };
}

function endings(c: Coefficients): readonly Ending[] {
  return [
    { part: 'one state Redis, all', bound: 'one thread', use: ({ state }) => state.busiest },
    {
      part: 'a gateway process',
      bound: 'one core',
      use: ({ gatewayCores, processes }) => gatewayCores / processes,
    },
    { part: 'what-if messages', bound: 'one thread', use: ({ state }) => state.whatIf },
    { part: 'rate limits', bound: 'one thread', use: ({ state }) => state.quotas },
    {
      part: 'rate limits in a Cluster',
      bound: '16 threads: they lie in 16 parts',
      use: (_load, rate) => (rate * (c.quotaCall / c.keysOfClusterCall + c.quotaKey)) / 1e6 / QUOTA_BUCKETS,
    },
    { part: 'keys: look-ups and uses', bound: 'one thread: all keys lie in one slot', use: ({ state }) => state.keys },
    { part: 'heartbeats', bound: 'one thread: they lie in one slot', use: ({ state }) => state.members },
    {
      part: 'a process comes or goes',
      bound: 'holds Redis for 80 ms, as long as a request waits for its limit',
      use: ({ newsMicros }) => newsMicros / QUOTA_WAIT_MICROS,
    },
    {
      part: 'keys that a process remembers',
      bound: '10,000: beyond, requests look theirs up',
      use: ({ keysOfAProcess }) => keysOfAProcess / REMEMBERED_KEYS,
    },
    {
      part: 'use of limits that a process knows, to go on without Redis',
      bound: '20,000 keys',
      use: ({ keysOfAProcess }) => keysOfAProcess / FALLBACK_LOGS,
    },
    {
      part: 'hashes of issued keys in a process',
      bound: '250,000: beyond, a guessing address can keep good keys behind it waiting',
      use: ({ population }) => population.keys / ISSUED_HASHES,
    },
    { part: 'one cache Redis, all', bound: 'one thread', use: ({ cacheCores }) => cacheCores },
    { part: 'ends of flights', bound: 'one thread', use: ({ flightCores }) => flightCores },
    {
      part: 'ends of flights, heard by a process',
      bound: 'one thread',
      use: ({ fills }) => (fills * c.gatewayHear) / 1e6,
    },
    {
      part: 'network of one cache Redis',
      bound: '10 Gbit/s',
      use: ({ redisHits }) => (redisHits * c.cacheHitBytes) / LINK_BYTES,
    },
    {
      part: 'memory of one state Redis',
      bound: '64 GB, half of it free for copies on write',
      use: (_load, rate) => stateBytes(c, rate) / (STATE_MEMORY_BYTES / 2),
    },
    {
      part: 'disk of one state Redis',
      bound: '200 MB/s',
      use: (_load, rate) => (rate * c.appendedBytes) / DISK_BYTES,
    },
    {
      part: 'one balancer’s network',
      bound: '10 Gbit/s',
      use: (_load, rate) => (rate * c.answerBytes) / LINK_BYTES,
    },
    {
      part: 'connections to one Redis',
      bound: '10,000 (`maxclients`)',
      use: ({ processes }) => (2 * processes) / MOST_CONNECTIONS,
    },
  ];
}

function firstOf(rates: readonly (number | null)[]): number {
  return rates[0] ?? Number.POSITIVE_INFINITY;
}

function ended(rate: number | null, perProcess: number): string {
  if (rate === null) return 'beyond 1,000,000,000';
  return `${short(rate)} (${short(rate / perProcess)})`;
}
