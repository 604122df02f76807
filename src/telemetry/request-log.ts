/** The line of each request in the log. Never a path, a query string or a credential (K2). */
import type { Config } from '../config/config.ts';
import { RegistryUnavailableError } from '../keys/key.ts';
import { logError } from '../log/error.ts';
import { type Logger, withoutRedaction } from '../log/logger.ts';
import { StoreError } from '../upstream/store.ts';
import type { RequestReport } from './request-report.ts';

const FIRST_ERROR_STATUS = 400;

export class RequestLog {
  /** Which requests get a line; those with a failure of the gateway itself always do. May change while it runs. */
  requests: Config['log']['requests'];
  readonly #logger: Logger;
  readonly #lines: Logger;

  constructor(logger: Logger, requests: Config['log']['requests']) {
    this.requests = requests;
    this.#logger = logger;
    this.#lines = withoutRedaction(logger);
  }

  write({ requestId, keyId, surface, route, method, status, cache, traceId, ...report }: RequestReport): void {
    const { failure, refusal } = report;
    const durationMs = Math.round(report.durationMs * 1000) / 1000;
    const line = { requestId, keyId, surface, route, method, status, durationMs, cache, ...refusal, traceId };
    const isExpected = isPartOfOutage(report);
    if (status >= 500 && !isExpected) {
      this.#logger.error({ ...line, err: failure }, 'request');
      return;
    }
    if (this.requests === 'off' || (this.requests === 'errors' && status < FIRST_ERROR_STATUS)) return;
    // The parent knows the level, which may change while the gateway runs.
    if (!this.#logger.isLevelEnabled('info')) return;
    if (isExpected) this.#lines.info({ ...line, failure: logError(failure).message }, 'request');
    else if (report.aborted) this.#lines.info({ ...line, aborted: true }, 'request');
    else this.#lines.info(line, 'request');
  }
}

/** An outage is logged once, when it begins: its requests need no line above `info`. */
function isPartOfOutage({ failure, isShed }: Pick<RequestReport, 'failure' | 'isShed'>): boolean {
  return (
    (failure instanceof StoreError && failure.isTransient) || failure instanceof RegistryUnavailableError || isShed
  );
}
