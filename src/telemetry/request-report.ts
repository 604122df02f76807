/** What the public application reports of its requests, to the log, the metrics and the spans. */
import type { ReadOutcome } from '../cache/reader.ts';
import type { WindowName } from '../quota/limiter.ts';

/** Never sent: the status that server logs give a request whose client left before it was answered. */
export const CLIENT_CLOSED_REQUEST = 499;

/** Why a request was refused, and whose it was: for the log. */
export interface Refusal {
  readonly reason: string;
  /** The client's address, with trusted proxies taken into account. */
  readonly address: string;
}

/** What became of a request, for the log and the metrics. Holds no path, query string or credential. */
export interface RequestReport {
  readonly requestId: string;
  readonly keyId: string | null;
  readonly surface: 'v1' | 'v2' | 'other';
  /** The route's template, or null if none matched. */
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
  /** How the cache answered; null if it was not read. */
  readonly cache: ReadOutcome | null;
  readonly refusal: Refusal | null;
  readonly failure: unknown;
  /** The failure is that too many requests were in progress (S2). */
  readonly isShed: boolean;
  /** The client left before the whole response was sent. */
  readonly aborted: boolean;
  /** Undefined if tracing is off. */
  readonly traceId: string | undefined;
}

/** What the public application reports. */
export interface PublicAppHooks {
  /** Called once per request, when its response has been sent or its client has left. */
  readonly onRequest: (report: RequestReport) => void;
  readonly onAuthenticationRefused: (reason: string) => void;
  readonly onQuotaRefused: (window: WindowName) => void;
  readonly onShed: () => void;
  /** A response could not be sent. Every failure of a request is answered; this is what is left: broken connections. */
  readonly onBroken: (error: unknown) => void;
}
