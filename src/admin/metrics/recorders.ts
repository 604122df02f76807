/** What the rooms report, as the metrics take it. */
import type { LeaseWaitEnd, MissReason } from '../../telemetry/events.ts';
import type { ReadOutcome } from '../../cache/reader.ts';
import type { CacheClass } from '../../cache/ttl-policy.ts';
import type { WindowName } from '../../quota/quota.ts';
import type { RedisRole } from '../../redis/connection.ts';
import type { CommandOutcome } from '../../redis/connection.ts';
import type { ResourceName } from '../../upstream/resources.ts';
import type { StoreAnswer, StoreErrorKind } from '../../upstream/store.ts';
import type { GuardHooks } from '../../upstream/guard.ts';
import type { MetricDescription } from './describe.ts';
import type { StateReadings } from './readings.ts';

export interface MetricsSource {
  /** The Content-Type of what `render` gives. */
  readonly contentType: string;
  /** The Prometheus text exposition format. */
  render(): Promise<string>;
}

export interface FinishedRequest {
  readonly surface: 'v1' | 'v2' | 'other';
  /** The path's template; null where no endpoint matched. */
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
  /** How the read was answered; null where none was made. */
  readonly cache: ReadOutcome | null;
}

export type StoreOutcome = StoreAnswer<unknown>['kind'] | StoreErrorKind;

/** Each is to be called once for each event; none ever throws. */
export interface MetricRecorders {
  requestFinished(request: FinishedRequest): void;
  storeCall(call: { readonly resource: ResourceName; readonly outcome: StoreOutcome; readonly seconds: number }): void;
  /** One record of a list left out because it isn't whole. */
  recordLeftOut(left: { readonly resource: ResourceName }): void;
  /** `reason` is one of a fixed few. */
  authenticationFailed(failure: { readonly reason: string }): void;
  quotaRefused(refusal: { readonly window: WindowName }): void;
  /** Too many were under way. */
  requestShed(): void;
  /** It never became one: `reason` is one of a fixed few. */
  requestUnreadable(refusal: { readonly reason: string }): void;
  /** There were too many. */
  connectionDropped(): void;
  /** `failed`: the store failed and there was nothing to serve. */
  cacheRead(read: {
    readonly class: CacheClass;
    readonly outcome: ReadOutcome | 'failed';
    readonly tier: 'memory' | 'redis' | null;
    /** Of what was served; null where nothing was. */
    readonly ageSeconds: number | null;
  }): void;
  cacheMiss(miss: { readonly class: CacheClass; readonly reason: MissReason }): void;
  /** How long a read waited for another process's call to the store, and how that ended. */
  leaseWait(wait: { readonly class: CacheClass; readonly end: LeaseWaitEnd; readonly seconds: number }): void;
  /** `start`: the first time. */
  configRead(read: { readonly result: 'start' | 'success' | 'failure'; readonly atMs: number }): void;
  /** What the guard of the store counts. */
  readonly guard: Required<Pick<GuardHooks, 'onRefused' | 'onTurnTaken' | 'onRetry'>>;
  redisCommand(command: { readonly role: RedisRole; readonly outcome: CommandOutcome; readonly seconds: number }): void;
}

export interface Metrics extends MetricsSource, MetricRecorders {
  /** All of them as prom-client hands them from process to process. */
  values(): Promise<unknown>;
  /** Every metric that there is, with samples or without. */
  describe(): Promise<readonly MetricDescription[]>;
  /** What the gauges read from now on; without it they have no samples. */
  watch(readings: StateReadings): void;
  /**
   * Forgets all metrics. prom-client's watchers of the event loop and of garbage collection cannot be stopped; neither
   * keeps the process alive.
   */
  close(): void;
}
