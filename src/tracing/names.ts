/**
 * What spans say of evalgate in particular. The names of everything else are those of OpenTelemetry's semantic conventions.
 * Nothing that a caller or the store can choose the text of is among the values, but for the request's id, which has
 * the form that the access log has it in.
 */
export const EVALGATE = {
  surface: 'evalgate.surface',
  keyId: 'evalgate.key.id',
  requestId: 'evalgate.request.id',
  /** How the read was answered. */
  cacheOutcome: 'evalgate.cache.outcome',
  cacheTier: 'evalgate.cache.tier',
  cacheClass: 'evalgate.cache.class',
  missReason: 'evalgate.cache.miss_reason',
  /** The consumer went away before it had the whole answer. */
  isAborted: 'evalgate.aborted',
  /** What is asked of the store. */
  resource: 'evalgate.resource',
  /** Where a flight found its answer. */
  flightFrom: 'evalgate.flight.from',
  /** How the wait for another process ended. */
  waitEnd: 'evalgate.wait.end',
  storeOutcome: 'evalgate.store.outcome',
  /** How long calls waited for their turn. */
  queueMs: 'evalgate.store.queue_ms',
  /** Which Redis: `state` or `cache`. */
  redis: 'evalgate.redis',
  /** Whether Redis decided; else this process did, with its share. */
  isQuotaShared: 'evalgate.quota.is_shared',
} as const;

/** Of the semantic conventions, where the package has it among what may still change. */
export const ATTR_URL_TEMPLATE = 'url.template';

const CODE = /^[A-Za-z][A-Za-z0-9_]{0,39}$/;

/** What kind of error it is, for `error.type`: a kind, a code or a class, and never its text, which may hold anything. */
export function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  for (const name of ['label', 'kind', 'code']) {
    const value: unknown = Reflect.get(error, name);
    if (typeof value === 'string' && CODE.test(value)) return value;
  }
  return CODE.test(error.name) ? error.name : 'Error';
}
