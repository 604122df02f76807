/** From all that was measured to the coefficients: which points tell which of them, and how well. Pure. */
import type { Coefficients } from './capacity-coefficients.ts';
import { type Fit, fit, type Observation } from './capacity-fit.ts';
import type { Point } from './capacity-fleet.ts';
import { median } from './gateway/measure.ts';
import { HOUR_REQUESTS } from './capacity-mix.ts';
import type { CallCost } from './capacity-busy.ts';
import type { BeatCost, ClusterMessage } from './capacity-messages.ts';
import type { Growth, HotKey } from './capacity-parts.ts';
import type { Told } from './capacity-single.ts';

export interface Parts {
  readonly keyBytes: number;
  /** With HOUR_REQUESTS in it. */
  readonly bytesOfALog: number;
  readonly quotaCalls: readonly Growth[];
  readonly hotKeys: readonly HotKey[];
  readonly keyLookup: CallCost;
  readonly keyUse: CallCost;
  readonly logBytes: readonly Growth[];
  readonly messages: readonly (CallCost & { readonly listeners: number })[];
  readonly heartbeats: readonly BeatCost[];
  readonly clusterMessages: readonly ClusterMessage[];
}

export interface Fleets {
  readonly points: readonly Point[];
  readonly told: Told;
  readonly cacheEntryBytes: number;
}

export interface Measurements extends Fleets {
  readonly parts: Parts;
  readonly cluster: Point;
  readonly logLineBytes: number;
}

/** A line or plane through points, by what it is called in the table of fits. */
export interface NamedFit extends Fit {
  readonly what: string;
  readonly points: number;
}

/** What the points and parts say together, by what is fitted. */
type Fits = ReturnType<typeof allFits>;

export function measuredCoefficients(all: Measurements): {
  readonly coefficients: Coefficients;
  readonly fits: readonly NamedFit[];
} {
  const fits = allFits(all);
  return { coefficients: { ...fromFits(fits), ...fromSingles(all, fits) }, fits: Object.values(fits) };
}

/** The one with the most gateways, at their highest rate. */
export function busiest(points: readonly Point[]): Point {
  const [first] = points.toSorted((a, b) => b.gateways - a.gateways || b.requests - a.requests);
  if (first === undefined) throw new RangeError('there is no point');
  return first;
}

/** Calls for rate limits a second; what a process calls for otherwise is left out. */
function callsOf({ gateways, requests, state }: Point, points: readonly Point[]): number {
  if (requests === 0) return 0;
  const idle = points.filter((point) => point.requests === 0);
  const ofAProcess = fit(idle.map((point) => ({ terms: [point.gateways], value: point.state.scripts })));
  return state.scripts - gateways * at(ofAProcess, 0);
}

/** Requests that went in one such call, on average. */
export function requestsOfACall(point: Point, points: readonly Point[]): number {
  return point.requests / callsOf(point, points);
}

/** The median of the points at about that rate of a process. */
function requestsOfACallAt(rate: number, points: readonly Point[]): number {
  const nearest = points.toSorted((a, b) => offFrom(rate, a) - offFrom(rate, b));
  const closest = nearest.filter((point) => offFrom(rate, point) <= offFrom(rate, nearest[0] ?? point) + MOST_OFF);
  return median(closest.map((point) => requestsOfACall(point, points)));
}

function offFrom(rate: number, { requests, gateways }: Point): number {
  return Math.abs(requests / gateways / rate - 1);
}

/** As a share of a rate. */
const MOST_OFF = 0.1;
const RATE = 2000;
const BUSY_RATE = 6000;
const MOST_KEYS_OF_FIT = 8;

function allFits({ points, parts }: Measurements) {
  const idle = points.filter(({ requests }) => requests === 0);
  const ofFleet = (what: string, valueOf: (point: Point) => number, termsOf: (point: Point) => readonly number[]) =>
    named(what, points, (point) => ({ terms: termsOf(point), value: valueOf(point) }));
  return {
    gateway: ofFleet(
      'CPU of the gateways: processes, requests, calls for limits, reads from Redis, calls to the store',
      ({ gatewayCpuMicros }) => gatewayCpuMicros,
      (point) => [point.gateways, point.requests, callsOf(point, points), point.redisHits, point.storeCalls],
    ),
    cache: ofFleet('CPU of the cache Redis: processes, reads, fills', ({ cache }) => cache.cpuMicros, byWork),
    cacheOut: ofFleet('bytes from the cache Redis: the same', ({ cache }) => cache.outBytes, byWork),
    cacheIn: ofFleet('bytes to the cache Redis: the same', ({ cache }) => cache.inBytes, byWork),
    stateIn: ofFleet('bytes to the state Redis: processes, requests', ({ state }) => state.inBytes, byRequests),
    stateOut: ofFleet('bytes from the state Redis: the same', ({ state }) => state.outBytes, byRequests),
    appended: ofFleet('bytes on its disk: the same', ({ state }) => state.appendedBytes, byRequests),
    stateIdle: named('CPU of the state Redis without requests: one, processes', idle, ({ gateways, state }) => ({
      terms: [1, gateways],
      value: state.cpuMicros,
    })),
    quota: growthFit(
      'CPU of a call for rate limits of up to 8 keys: one, keys',
      parts.quotaCalls.filter(({ x }) => x <= MOST_KEYS_OF_FIT),
    ),
    log: growthFit('bytes of a log: one, requests in it', parts.logBytes),
    messages: named('CPU of a message: one, who hears it', parts.messages, ({ listeners, redisMicros }) => ({
      terms: [1, listeners],
      value: redisMicros,
    })),
    hear: named('CPU of those who hear a message: one, each', parts.messages, ({ listeners, processMicros }) => ({
      terms: [1, listeners],
      value: processMicros,
    })),
    beat: beatFit('CPU of a heartbeat at Redis: one, members', parts.heartbeats, ({ redisMicros }) => redisMicros),
    beatBytes: beatFit('bytes of a heartbeat: one, members', parts.heartbeats, ({ answerBytes }) => answerBytes),
    beatOfProcess: beatFit(
      'CPU of a heartbeat at the process: one, members',
      parts.heartbeats,
      ({ processMicros }) => processMicros,
    ),
  };
}

function fromFits(fits: Fits) {
  return {
    gatewayIdle: at(fits.gateway, 0),
    gatewayRequest: at(fits.gateway, 1),
    gatewayCall: at(fits.gateway, 2),
    gatewayHit: at(fits.gateway, 3),
    gatewayFill: at(fits.gateway, 4),
    gatewayHear: at(fits.hear, 1),
    gatewayMember: at(fits.beatOfProcess, 1),
    quotaCall: at(fits.quota, 0),
    quotaKey: at(fits.quota, 1),
    stateIdle: at(fits.stateIdle, 1),
    publish: at(fits.messages, 0),
    deliver: at(fits.messages, 1),
    beat: at(fits.beat, 0),
    beatMember: at(fits.beat, 1),
    beatBytes: at(fits.beatBytes, 1),
    stateInBytes: at(fits.stateIn, 1),
    stateOutBytes: at(fits.stateOut, 1),
    appendedBytes: at(fits.appended, 1),
    logEntryBytes: at(fits.log, 1),
    cacheIdle: at(fits.cache, 0),
    cacheHit: at(fits.cache, 1),
    cacheFill: at(fits.cache, 2),
    cacheHitBytes: at(fits.cacheOut, 1),
    cacheFillBytes: at(fits.cacheIn, 2),
  };
}

function fromSingles({ parts, points, cluster, told, cacheEntryBytes, logLineBytes }: Measurements, { log }: Fits) {
  const busy = busiest(points);
  const last = parts.clusterMessages.at(-1);
  const answers = Object.values(busy.driven.kinds);
  return {
    memoryAnswer: told.memoryAnswerBytes,
    samples: told.samples,
    keysOfCall: requestsOfACallAt(RATE, points),
    keysOfBusyCall: requestsOfACallAt(BUSY_RATE, points),
    keysOfClusterCall: requestsOfACall(cluster, points),
    keyLookup: parts.keyLookup.redisMicros,
    keyUse: parts.keyUse.redisMicros,
    busNode: last?.otherMicros ?? Number.NaN,
    busBytes: last?.otherBytes ?? Number.NaN,
    keyBytes: parts.keyBytes,
    logBytes: parts.bytesOfALog - HOUR_REQUESTS * at(log, 1),
    cacheEntryBytes,
    answerBytes: total(answers.map(({ bytes }) => bytes)) / total(answers.map(({ requests }) => requests)),
    requestBytes: busy.driven.sentBytes / busy.driven.requests,
    logLineBytes,
  };
}

function byWork({ gateways, redisHits, storeCalls }: Point): readonly number[] {
  return [gateways, redisHits, storeCalls];
}

function byRequests({ gateways, requests }: Point): readonly number[] {
  return [gateways, requests];
}

function named<T>(what: string, points: readonly T[], observe: (point: T) => Observation): NamedFit {
  return { what, points: points.length, ...fit(points.map(observe)) };
}

function growthFit(what: string, growth: readonly Growth[]): NamedFit {
  return named(what, growth, ({ x, value }) => ({ terms: [1, x], value }));
}

function beatFit(what: string, beats: readonly BeatCost[], valueOf: (beat: BeatCost) => number): NamedFit {
  return named(what, beats, (beat) => ({ terms: [1, beat.members], value: valueOf(beat) }));
}

function at({ coefficients }: Fit, index: number): number {
  const value = coefficients[index];
  if (value === undefined) throw new RangeError(`there is no coefficient ${index}`);
  return value;
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
