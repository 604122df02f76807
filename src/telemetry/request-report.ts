/** The report of each request to the log, the metrics and the spans; and its line in the log. */
import type { ReadOutcome } from '../cache/reader.ts';
import { FeedUnavailableError } from '../changes/feed.ts';
import type { Config } from '../config/config.ts';
import type { AuthFailure } from '../keys/authenticate.ts';
import { RegistryUnavailableError } from '../keys/key.ts';
import { logError } from '../log/error.ts';
import { type Logger, withoutRedaction } from '../log/logger.ts';
import type { WindowName } from '../quota/limiter.ts';
import { StoreError, type StoreErrorKind } from '../upstream/store-error.ts';

/** Never sent: the status that server logs give a request whose client left before it was answered. */
export const CLIENT_CLOSED_REQUEST = 499;

/** Why a request was refused, and whose it was: for the log. */
export interface Refusal {
  readonly reason: string;
  /** The client's address, with trusted proxies taken into account. */
  readonly address: string;
}

/** How a request ended, for the log and the metrics. Holds no path, query string or credential. */
export interface RequestReport {
  readonly requestId: string;
  readonly keyId: string | null;
  readonly surface: 'v1' | 'v2' | 'other';
  /** The route's template, or null if none matched. */
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
  readonly cache: ReadOutcome | null;
  /** Why the store has not renewed an old copy that was served instead; null if none was. */
  readonly storeFailure: StoreErrorKind | null;
  readonly refusal: Refusal | null;
  /** The error behind a 500; null if there is none. */
  readonly failure: unknown;
  /** Why the request was refused at once, if too many were in progress (S2: shed load is 500). */
  readonly shedReason: string | null;
  /** The client left before the whole response was sent. */
  readonly aborted: boolean;
  /** Undefined if tracing is off. */
  readonly traceId: string | undefined;
}

export interface PublicAppHooks {
  /** Called once per request, when its response has been sent or its client has left. */
  readonly onRequest: (report: RequestReport) => void;
  readonly onAuthenticationRefused: (reason: AuthFailure | 'inactive' | 'address-forbidden' | 'unavailable') => void;
  readonly onQuotaRefused: (window: WindowName) => void;
  readonly onShed: () => void;
  /** A response could not be sent. Every other failure of a request is answered; this one is a broken connection. */
  readonly onBroken: (error: unknown) => void;
}

const FIRST_ERROR_STATUS = 400;

/** The line of each request in the log (K2: never a path, a query string or a credential). */
export class RequestLog {
  /** Which requests get a line; those with a failure of the gateway itself always do. May change while it runs. */
  requests: Config['log']['requests'];
  readonly #logger: Logger;
  /** By route, or by surface for what has none: with the members that all its lines share. */
  readonly #lines = new Map<string, Logger>();

  constructor(logger: Logger, requests: Config['log']['requests']) {
    this.requests = requests;
    this.#logger = logger;
  }

  write(report: RequestReport): void {
    const { requestId, keyId, surface, route, method, status, cache, traceId, failure, refusal } = report;
    const durationMs = Math.round(report.durationMs * 1000) / 1000;
    const storeFailure = report.storeFailure ?? undefined;
    const line = { requestId, keyId, method, status, durationMs, cache, storeFailure, ...refusal, traceId };
    const isExpected = isPartOfOutage(report);
    if (status >= 500 && !isExpected) {
      this.#logger.error({ surface, route, ...line, err: failure }, 'request');
      return;
    }
    if (this.requests === 'off' || (this.requests === 'errors' && status < FIRST_ERROR_STATUS)) return;
    // The parent knows the level, which may change while the gateway runs.
    if (!this.#logger.isLevelEnabled('info')) return;
    const lines = this.#linesOf(report);
    if (isExpected) lines.info({ ...line, failure: report.shedReason ?? logError(failure).message }, 'request');
    else if (report.aborted) lines.info({ ...line, aborted: true }, 'request');
    else lines.info(line, 'request');
  }

  #linesOf({ surface, route }: RequestReport): Logger {
    const name = route ?? surface;
    const known = this.#lines.get(name) ?? withoutRedaction(this.#logger, { surface, route });
    this.#lines.set(name, known);
    return known;
  }
}

/** An outage is logged once, when it begins: its requests need no line above `info`. */
function isPartOfOutage({ failure, shedReason }: Pick<RequestReport, 'failure' | 'shedReason'>): boolean {
  if (shedReason !== null || failure instanceof RegistryUnavailableError) return true;
  if (failure instanceof FeedUnavailableError) return true;
  return failure instanceof StoreError && failure.isTransient;
}
