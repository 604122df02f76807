/** The arithmetic of capacity: from measured coefficients to what a fleet of any size needs. Pure; no figure is hidden. */
import { expectedFills, SHARES } from './capacity-mix.ts';
import type { Coefficients } from './capacity-coefficients.ts';

/**
 * How the balancer chooses a gateway: `any` spreads each key's requests over all of them, `key` sends them to one
 * (consistent hashing of the Authorization header).
 */
export type Balancing = 'any' | 'key';

export interface Scenario {
  /** Requests a second of all. */
  readonly rate: number;
  /** Requests a second of a gateway process. */
  readonly perProcess: number;
  readonly balancing: Balancing;
  /** Primaries of the state Redis; 1 is a server without a Cluster. */
  readonly stateNodes: number;
}

/** What grows with the number of consumers. Each key makes as many requests as the default limit of an hour allows. */
export const REQUESTS_OF_A_KEY_A_SECOND = 3000 / 3600;
export const KEYS_OF_A_WORKSPACE = 8;
export const CALLS_OF_A_WORKSPACE = 8;
export const FRESH_SECONDS = { list: 30, evaluation: 300, transcript: 3600 } as const;
/** Of `src/keys`: how often a key in use is confirmed and its use noted, and how many a process remembers. */
export const CONFIRM_SECONDS = 30;
export const REMEMBERED_KEYS = 10_000;
/** Of `src/cache/what-if`: how often reads are sent to those who follow their keys, and how many at once. */
export const EXCHANGE_SECONDS = 0.25;
export const MOST_EXCHANGED = 512;
/** Of `src/redis/members.ts`. */
export const BEAT_SECONDS = 2;
/** Of `src/quota`: parts of a Cluster over which rate limits can be spread, and how long a request waits for them. */
export const QUOTA_BUCKETS = 16;
export const QUOTA_WAIT_MICROS = 80_000;
const SECOND_MICROS = 1_000_000;
const HOUR_SECONDS = 3600;

export interface Population {
  readonly keys: number;
  readonly lists: number;
  readonly evaluations: number;
  readonly transcripts: number;
}

export interface Load {
  readonly processes: number;
  readonly population: Population;
  /** Per second. */
  readonly fills: number;
  readonly redisHits: number;
  readonly lookups: number;
  /** That a process sees. */
  readonly keysOfAProcess: number;
  readonly keyUses: number;
  readonly whatIfMessages: number;
  /** Seconds of CPU a second. */
  readonly gatewayCores: number;
  readonly state: StateLoad;
  readonly cacheCores: number;
  readonly flightCores: number;
  /** How long the state Redis is held when a process comes or goes and all others look. Microseconds. */
  readonly newsMicros: number;
  /** Answers that a process has read within their freshness. Bytes. */
  readonly workingSetBytes: number;
}

/** Seconds of CPU a second, of all nodes together unless it says otherwise. */
export interface StateLoad {
  readonly quotas: number;
  /** At the one node that has the keys. */
  readonly keys: number;
  readonly whatIf: number;
  readonly members: number;
  readonly idle: number;
  /** Of the busiest node. */
  readonly busiest: number;
}

export function populationOf(rate: number): Population {
  const keys = rate / REQUESTS_OF_A_KEY_A_SECOND;
  const workspaces = keys / KEYS_OF_A_WORKSPACE;
  return { keys, lists: workspaces, evaluations: workspaces * CALLS_OF_A_WORKSPACE, transcripts: workspaces };
}

/** How many of `processes` see at least one of `reads` that are spread over them at random. */
export function reached(processes: number, reads: number): number {
  return processes * (1 - (1 - 1 / processes) ** reads);
}

/** Messages a second that bring reads to those who follow their keys: quadratic in the processes, until each read is one. */
export function whatIfMessages(processes: number, perProcess: number): number {
  if (processes < 2) return 0;
  const rounds = Math.max(1 / EXCHANGE_SECONDS, perProcess / MOST_EXCHANGED);
  const others = (processes - 1) / processes;
  return processes * rounds * reached(processes, perProcess / rounds) * others;
}

/** Requests that go in one call for rate limits: the busier a process, the more. Between the two that were measured. */
export function requestsOfACall(c: Coefficients, { perProcess, stateNodes }: Scenario): number {
  if (stateNodes > 1) return c.keysOfClusterCall;
  const towardsBusy = Math.min(1, Math.max(0, (perProcess - 2000) / 4000));
  return c.keysOfCall + towardsBusy * (c.keysOfBusyCall - c.keysOfCall);
}

export function loadOf(c: Coefficients, scenario: Scenario): Load {
  const { rate, perProcess } = scenario;
  const processes = Math.max(1, Math.round(rate / perProcess));
  const population = populationOf(rate);
  const reads = readsOf(rate);
  const fills = fillsOf(population, reads);
  const redisHits = hitsOf(scenario, processes, population);
  const { lookups, uses, keysOfAProcess } = keyTraffic(scenario, processes, population.keys);
  const messages = whatIfMessages(processes, perProcess);
  const deliveries = fills * (c.publish + processes * c.deliver);
  const beatMicros = c.beat + processes * c.beatMember;
  const seenAnswers = (population.lists + population.evaluations + population.transcripts) * share(scenario, processes);
  return {
    processes,
    population,
    fills,
    redisHits,
    lookups,
    keysOfAProcess,
    keyUses: uses,
    whatIfMessages: messages,
    gatewayCores:
      (rate * (c.gatewayRequest + c.gatewayCall / requestsOfACall(c, scenario)) +
        redisHits * c.gatewayHit +
        fills * c.gatewayFill +
        processes * (c.gatewayIdle + fills * c.gatewayHear + (processes * c.gatewayMember) / BEAT_SECONDS)) /
      SECOND_MICROS,
    state: stateLoad(c, scenario, {
      quotas: rate,
      keys: lookups * c.keyLookup + uses * c.keyUse,
      messages,
      members: (processes / BEAT_SECONDS) * beatMicros,
      idle: processes * c.stateIdle,
    }),
    cacheCores: (redisHits * c.cacheHit + fills * c.cacheFill + deliveries + processes * c.cacheIdle) / SECOND_MICROS,
    flightCores: deliveries / SECOND_MICROS,
    newsMicros: processes * beatMicros,
    workingSetBytes: seenAnswers * c.memoryAnswer,
  };
}

/** Bytes that the state Redis holds, replicas not counted. */
export function stateBytes(c: Coefficients, rate: number): number {
  const { keys } = populationOf(rate);
  return rate * HOUR_SECONDS * c.logEntryBytes + keys * (c.logBytes + c.keyBytes);
}

/** Bytes that the cache Redis holds where it holds all that is read. */
export function cacheBytes(c: Coefficients, rate: number): number {
  const { lists, evaluations, transcripts } = populationOf(rate);
  return (lists + evaluations + transcripts) * c.cacheEntryBytes;
}

/**
 * The rate at which something that grows with it reaches 1, to a thousandth; null where it doesn't by a billion. Whatever
 * only jumps between two rates is found at the upper one.
 */
export function breaksAt(useOf: (rate: number) => number): number | null {
  let [low, high] = [0, 1e9];
  if (useOf(high) < 1) return null;
  while (high - low > high / 1000) {
    const middle = (low + high) / 2;
    if (useOf(middle) < 1) low = middle;
    else high = middle;
  }
  return high;
}

interface Reads {
  readonly list: number;
  readonly evaluation: number;
  readonly transcript: number;
}

function readsOf(rate: number): Reads {
  const list = ((SHARES.list + SHARES['list, gzip'] + SHARES['list, 304']) / 100) * rate;
  return { list, evaluation: (SHARES.single / 100) * rate, transcript: (SHARES['transcript page, gzip'] / 100) * rate };
}

/** Evaluations come with the lists that hold them. */
function fillsOf({ lists, transcripts }: Population, reads: Reads): number {
  return (
    expectedFills({ answers: lists, readsPerSecond: reads.list, freshSeconds: FRESH_SECONDS.list }) +
    expectedFills({ answers: transcripts, readsPerSecond: reads.transcript, freshSeconds: FRESH_SECONDS.transcript })
  );
}

/**
 * Each process fetches an answer from Redis once while it is fresh, if it is asked for it then; of what is filled, one
 * process has it already.
 */
function hitsOf(scenario: Scenario, processes: number, population: Population): number {
  const reads = readsOf(scenario.rate);
  const of = (answers: number, readsPerSecond: number, freshSeconds: number, isFilled: boolean): number => {
    const inTurn = (readsPerSecond / answers) * freshSeconds;
    return (answers / freshSeconds) * Math.max(0, seeing(scenario, processes, inTurn) - (isFilled ? 1 : 0));
  };
  return (
    of(population.lists, reads.list, FRESH_SECONDS.list, true) +
    of(population.evaluations, reads.evaluation, FRESH_SECONDS.evaluation, false) +
    of(population.transcripts, reads.transcript, FRESH_SECONDS.transcript, true)
  );
}

/** How many processes see an answer that is read so often. By key, those that its workspace's keys are sent to. */
function seeing({ balancing }: Scenario, processes: number, reads: number): number {
  const among = balancing === 'any' ? processes : reached(processes, KEYS_OF_A_WORKSPACE);
  return among < 1 ? 1 : reached(among, reads);
}

/** The part of all answers that one process has to do with. */
function share({ balancing }: Scenario, processes: number): number {
  return balancing === 'any' ? 1 : reached(processes, KEYS_OF_A_WORKSPACE) / processes;
}

/** Keys that are confirmed because it is time, and those that a process has forgotten because it saw too many others. */
function keyTraffic({ rate, balancing }: Scenario, processes: number, keys: number) {
  const ofAKey = REQUESTS_OF_A_KEY_A_SECOND * CONFIRM_SECONDS;
  const seenBy = balancing === 'any' ? reached(processes, ofAKey) : 1;
  const uses = (keys * seenBy) / CONFIRM_SECONDS;
  const keysOfAProcess = balancing === 'any' ? keys : keys / processes;
  const forgotten = Math.max(0, 1 - REMEMBERED_KEYS / keysOfAProcess);
  return { uses, keysOfAProcess, lookups: forgotten * rate + (1 - forgotten) * uses };
}

interface StateWork {
  /** Requests a second. */
  readonly quotas: number;
  /** Microseconds a second. */
  readonly keys: number;
  readonly members: number;
  readonly idle: number;
  /** Messages a second. */
  readonly messages: number;
}

function stateLoad(c: Coefficients, scenario: Scenario, work: StateWork): StateLoad {
  const { stateNodes } = scenario;
  const together = requestsOfACall(c, scenario);
  const quotas = (work.quotas * (c.quotaCall / together + c.quotaKey)) / SECOND_MICROS;
  // A Cluster tells every node of every message.
  const ofAMessage = c.publish + c.deliver + (stateNodes - 1) * c.busNode;
  const whatIf = (work.messages * ofAMessage) / SECOND_MICROS;
  const [keys, members, idle] = [work.keys, work.members, work.idle].map((micros) => micros / SECOND_MICROS);
  return {
    quotas,
    keys: keys ?? 0,
    whatIf,
    members: members ?? 0,
    idle: idle ?? 0,
    // In the worst case keys, members and a full part of the rate limits meet at one node.
    busiest:
      quotas / Math.min(stateNodes, QUOTA_BUCKETS) + (whatIf + (idle ?? 0)) / stateNodes + (keys ?? 0) + (members ?? 0),
  };
}
