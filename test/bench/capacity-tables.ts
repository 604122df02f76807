/** What was measured, as tables, and whether the arithmetic holds where it can be held against it. Pure. */
import type { Row } from '../prove/row.ts';
import type { Table } from './gateway/case.ts';
import { figures } from './capacity-coefficients.ts';
import type { Point } from './capacity-fleet.ts';
import { expectedFills, KINDS, SHARES, WORKSPACES } from './capacity-mix.ts';
import { whatIfMessages } from './capacity-plan.ts';
import { busiest, type Measurements, type NamedFit, type Parts, requestsOfACall } from './capacity-sums.ts';

/** How far the arithmetic may be from what was measured, in percent. */
const MOST_OFF_PERCENT = 20;
const RATE = 8000;
const LEAST_RATE_SHARE = 0.97;
const MEGABYTE = 1_000_000;

export function measuredRows({ points }: Measurements, fits: readonly NamedFit[]): readonly Row[] {
  const most = busiest(points);
  const others = points.reduce((sum, point) => sum + point.others, 0);
  const worst = fits.reduce((a, b) => (b.errorPercent > a.errorPercent ? b : a));
  return [
    {
      name: 'capacity: 4 gateways × 2,000 requests/s',
      bar: 'every request answered 200 or 304, at that rate',
      measured: `${whole(most.requests)} requests/s, ${latency(most)}; ${whole(others)} others or none in all points`,
      ok: most.requests >= LEAST_RATE_SHARE * RATE && others === 0,
    },
    offRow('capacity: calls to the store, all points', points, ({ storeCalls }) => storeCalls, expectedStoreCalls),
    offRow(
      'capacity: messages for what-if curves, all points',
      points.filter(({ gateways }) => gateways > 1),
      ({ messages }) => messages['what-if'],
      expectedWhatIf,
    ),
    {
      name: 'capacity: fits',
      bar: `each at most ${MOST_OFF_PERCENT} % off on average`,
      measured: `at most ${worst.errorPercent.toFixed(1)} % (${worst.what})`,
      ok: worst.errorPercent <= MOST_OFF_PERCENT,
    },
  ];
}

export function measuredTables(all: Measurements, fits: readonly NamedFit[]): readonly Table[] {
  return [
    fleetTable(all),
    messagesTable(all),
    answersTable(busiest(all.points)),
    ...partTables(all.parts),
    {
      title: '**Fits: a coefficient for each of the terms**',
      head: ['what, and its terms', 'points', 'coefficients', 'R²', 'off on average'],
      lines: fits.map(({ what, points, coefficients, r2, errorPercent }) => [
        what,
        String(points),
        coefficients.map(figures).join('; '),
        r2.toFixed(3),
        `${errorPercent.toFixed(1)} %`,
      ]),
    },
  ];
}

function fleetTable({ points, cluster }: Measurements): Table {
  return {
    title:
      '**Fleets at fixed rates**: CPU in milliseconds a second, in parentheses in microseconds a request; of calls to the store what the arithmetic expects',
    head: [
      'gateways',
      'requests/s',
      'hits',
      'p50, p99 ms',
      'gateways’ CPU',
      'state Redis',
      'cache Redis',
      'reads from Redis/s',
      'calls to the store/s',
    ],
    lines: [...points.map((point) => fleetLine(point, '')), fleetLine(cluster, ', state in a Cluster of 3')],
  };
}

function fleetLine(point: Point, state: string): readonly string[] {
  const { requests } = point;
  const aRequest = (value: number): string => (requests === 0 ? '' : figures(value / requests));
  return [
    `${point.gateways}, lists fresh ${point.freshSeconds} s${point.memory === '0B' ? ', no memory tier' : ''}${state}`,
    whole(requests),
    requests === 0 ? '' : `${(100 * point.hitRatio).toFixed(1)} %`,
    requests === 0 ? '' : `${point.driven.latencyMs.p50.toFixed(1)}, ${point.driven.latencyMs.p99.toFixed(1)}`,
    `${whole(point.gatewayCpuMicros / 1000)} (${aRequest(point.gatewayCpuMicros)})`,
    `${whole(point.state.cpuMicros / 1000)} (${aRequest(point.state.cpuMicros)})`,
    `${whole(point.cache.cpuMicros / 1000)} (${aRequest(point.cache.cpuMicros)})`,
    whole(point.redisHits),
    `${figures(point.storeCalls)} (${figures(expectedStoreCalls(point))})`,
  ];
}

function messagesTable({ points, cluster }: Measurements): Table {
  return {
    title: '**Commands, messages and connections**: of what-if messages what the arithmetic expects in parentheses',
    head: [
      'gateways',
      'requests/s',
      'state commands a request',
      'requests a call for limits',
      'cache commands a request',
      'what-if/s',
      'beats/s',
      'ends of flights/s',
      'heard/s',
      'connections, state + cache',
      'resident, each',
    ],
    lines: [...points.map((point) => messagesLine(point, points, '')), messagesLine(cluster, points, ', Cluster of 3')],
  };
}

function messagesLine(point: Point, points: readonly Point[], state: string): readonly string[] {
  const { gateways, requests, messages } = point;
  return [
    `${gateways}${state}`,
    whole(requests),
    requests === 0 ? '' : figures(point.state.commands / requests),
    requests === 0 ? '' : figures(requestsOfACall(point, points)),
    requests === 0 ? '' : figures(point.cache.commands / requests),
    `${figures(messages['what-if'])} (${figures(expectedWhatIf(point))})`,
    figures(messages.beat),
    figures(messages.flights),
    figures(messages.flights * gateways),
    `${point.state.connections} + ${point.cache.connections}`,
    `${whole(point.residentBytes / MEGABYTE)} MB`,
  ];
}

function answersTable({ driven }: Point): Table {
  return {
    title: '**Bytes of an answer, with its header**',
    head: ['what', 'share', 'bytes'],
    lines: KINDS.map((kind) => {
      const { requests, bytes } = driven.kinds[kind];
      return [kind, `${SHARES[kind]} %`, whole(bytes / Math.max(1, requests))];
    }),
  };
}

function partTables({ quotaCalls, hotKeys, messages, heartbeats, clusterMessages }: Parts): readonly Table[] {
  return [
    {
      title: '**A call for rate limits**, by its keys, each with 2,400 requests in its hour',
      head: ['keys', 'CPU of Redis a call', 'a request'],
      lines: quotaCalls.map(({ x, value }) => [String(x), micros(value), micros(value / x)]),
    },
    {
      title: '**One key alone**, by the requests in its hour and those in one call',
      head: ['in its hour', 'in the call', 'CPU of Redis a call', 'a request'],
      lines: hotKeys.map(({ logLength, requests, redisMicros }) => [
        whole(logLength),
        String(requests),
        micros(redisMicros),
        micros(redisMicros / requests),
      ]),
    },
    {
      title: '**A message**, by who hears it',
      head: ['listeners', 'CPU of Redis', 'CPU of all listeners'],
      lines: messages.map(({ listeners, redisMicros, processMicros }) => [
        String(listeners),
        micros(redisMicros),
        micros(processMicros),
      ]),
    },
    {
      title: '**A heartbeat**, by the processes of the fleet',
      head: ['processes', 'CPU of Redis', 'CPU of the process', 'answer'],
      lines: heartbeats.map(({ members, redisMicros, processMicros, answerBytes }) => [
        whole(members),
        micros(redisMicros),
        micros(processMicros),
        `${figures(answerBytes / 1000)} kB`,
      ]),
    },
    {
      title: '**A message to a Cluster**, by its nodes',
      head: ['nodes', 'CPU of the one that is asked', 'CPU of each other', 'bytes to each other'],
      lines: clusterMessages.map(({ nodes, originMicros, otherMicros, otherBytes }) => [
        String(nodes),
        micros(originMicros),
        micros(otherMicros),
        whole(otherBytes),
      ]),
    },
  ];
}

function offRow(
  name: string,
  points: readonly Point[],
  measuredOf: (point: Point) => number,
  expectedOf: (point: Point) => number,
): Row {
  const loaded = points.filter(({ requests }) => requests > 0);
  const [measured, expected] = [measuredOf, expectedOf].map((of) => loaded.map(of).reduce((sum, one) => sum + one, 0));
  const offPercent = 100 * ((measured ?? 0) / (expected ?? 0) - 1);
  return {
    name,
    bar: `within ${MOST_OFF_PERCENT} % of the arithmetic`,
    measured: `${figures(measured ?? 0)}/s, expected ${figures(expected ?? 0)}/s: ${offPercent.toFixed(0)} % off`,
    ok: Math.abs(offPercent) <= MOST_OFF_PERCENT,
  };
}

/** Lists alone: what else is read is fresh for longer than a point takes. */
function expectedStoreCalls({ requests, freshSeconds }: Point): number {
  const share = (SHARES.list + SHARES['list, gzip'] + SHARES['list, 304']) / 100;
  return expectedFills({ answers: WORKSPACES, readsPerSecond: share * requests, freshSeconds });
}

function expectedWhatIf({ gateways, requests }: Point): number {
  return whatIfMessages(gateways, requests / gateways);
}

function latency({ driven }: Point): string {
  return `p50 ${driven.latencyMs.p50.toFixed(1)} ms, p99 ${driven.latencyMs.p99.toFixed(1)} ms`;
}

function micros(value: number): string {
  return `${figures(value)} µs`;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
