/** Opens what the other rooms report to: metrics, the health of dependencies, and the log of requests. */
import type { Config } from '../config/config.ts';
import type { Logger } from '../log/logger.ts';
import type { Clock } from '../time/clock.ts';
import { VERSION } from '../version.ts';
import { ConsumerHealth } from './consumers.ts';
import { trackCapacity } from './dependencies.ts';
import { Health } from './health.ts';
import { Metrics } from './metrics.ts';
import { RequestLog } from './request-report.ts';
import { StoreHealth } from './store-health.ts';

/** Where everything is reported to. */
export interface Reporting {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly health: Health;
  readonly clock: Clock;
}

export interface TelemetryContext {
  readonly config: Config;
  /** How many lines of the log were dropped. */
  readonly droppedLines: (() => number) | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
}

export interface Telemetry extends Reporting {
  readonly storeHealth: StoreHealth;
  readonly consumers: ConsumerHealth;
  /** Notes that a request or a connection was refused, because the process has as many as it may have. */
  readonly noteRefusal: () => void;
  readonly requestLog: RequestLog;
}

/** `/readyz` lists the dependencies in the order in which they are opened. */
export function openTelemetry({ config, droppedLines, logger, clock }: TelemetryContext): Telemetry {
  const metrics = new Metrics(VERSION, droppedLines);
  const health = new Health({ clock, logger });
  const storeHealth = new StoreHealth(health, clock, config.upstream.degradedPercent);
  metrics.addStoreHealth(() => storeHealth.isDown());
  const noteRefusal = trackCapacity(health, clock);
  const consumers = new ConsumerHealth(health, clock, config);
  metrics.addObjectives(() => consumers.objectives());
  const requestLog = new RequestLog(logger, config.log.requests);
  return { metrics, health, logger, clock, storeHealth, consumers, noteRefusal, requestLog };
}
