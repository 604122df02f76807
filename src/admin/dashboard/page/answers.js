/** The answers of the admin interface, endpoint by endpoint: only what the page shows. Pure. */
import { anything, flag, list, mapOf, number, optional, shape, text, time } from './read.js';

/** The classes of answers, in the order in which they are shown everywhere. */
export const CLASSES = ['list', 'evaluation', 'transcript', 'scorecard', 'rubric', 'dealInsights', 'notFound'];

/** `GET /readyz` */
export const readReadiness = shape({
  status: text,
  dependencies: list(shape({ name: text, status: text, since: optional(time), detail: text })),
});

/** `GET /api/fleet` */
export const readFleet = shape({
  members: list(shape({ id: text, host: text, pid: number, version: text, startedAt: time, status: text, self: flag })),
});

/** `GET /api/cache/history` */
export const readHistory = shape({
  stepMs: number,
  points: list(
    shape({ at: time, classes: mapOf(shape({ reads: number, hits: number, storeCalls: number, failed: number })) }),
  ),
});

/** `GET /api/cache/pulse` */
export const readPulse = shape({
  process: text,
  stepMs: number,
  points: list(shape({ at: time, reads: number, p99Ms: optional(number), staleOnError: number })),
});

/** `GET /api/cache` */
export const readStats = shape({
  since: time,
  memory: shape({ entries: number, bytes: number, maxBytes: number }),
  classes: list(
    shape({
      class: text,
      reads: number,
      misses: mapOf(number),
      memory: shape({ entries: number, bytes: number }),
      latencyMs: optional(shape({ p50: number, p90: number, p99: number })),
    }),
  ),
});

const ends = shape({ fresh: optional(time), stale: optional(time), error: optional(time) });

/** One class of `GET /api/cache/ttl`. */
export const readTtl = shape({
  class: text,
  fresh: text,
  stale: text,
  error: text,
  freshMs: number,
  staleMs: number,
  errorMs: number,
  source: shape({ fresh: text, stale: text, error: text }),
  setBy: optional(text),
  setAt: optional(time),
  until: optional(ends),
});

/** `GET /api/cache/ttl` */
export const readTtls = shape({ classes: list(readTtl) });

const curvePoint = shape({
  freshMs: number,
  hitRatio: number,
  hitRatioError: number,
  upstreamRps: number,
  ageP90Ms: number,
  outdatedRatio: optional(number),
  extrapolated: flag,
});

/** `GET /api/cache/advice` */
export const readAdvice = shape({
  classes: list(
    shape({
      class: text,
      reads: number,
      since: optional(time),
      outdatedLimit: number,
      current: optional(curvePoint),
      measured: optional(shape({ hitRatio: number, upstreamRps: number })),
      curve: list(curvePoint),
      recommendation: shape({ freshMs: optional(number), why: text }),
    }),
  ),
});

/** `GET /api/cache/top` */
export const readTop = shape({
  since: time,
  keys: list(shape({ key: text, class: text, storeCalls: number, storeMs: number })),
  routes: list(shape({ route: text, storeCalls: number, storeMs: number })),
});

/** `POST /api/cache/purge` */
export const readPurge = shape({
  entries: number,
  bytes: number,
  complete: optional(flag),
  lists: optional(shape({ entries: number, workspaces: optional(number) })),
});

/** `GET|PUT|DELETE /api/cache/maintenance` */
export const readMaintenance = shape({ active: flag, until: optional(time), by: optional(text) });

const copy = shape({
  state: text,
  answer: text,
  visible: optional(flag),
  ageMs: number,
  freshUntil: optional(time),
  staleUntil: optional(time),
  errorUntil: optional(time),
  softPurged: flag,
  tags: list(text),
  bytes: number,
});

/** `GET /api/cache/explain` */
export const readExplanation = shape({
  at: time,
  route: text,
  key: text,
  class: text,
  next: shape({ text }),
  memory: optional(copy),
  redis: shape({ state: text, entry: optional(copy) }),
  flight: shape({ since: optional(time), justFailed: flag }),
  lastMiss: optional(shape({ reason: text, at: time })),
  times: readTtl,
});

const key = shape({
  keyId: text,
  name: text,
  status: text,
  workspaceIds: list(text),
  scopes: list(text),
  createdAt: time,
  expiresAt: optional(time),
  limits: shape({ perMinute: optional(number), perHour: optional(number) }),
  lastUsedAt: optional(time),
});

/** `GET /api/keys` */
export const readKeys = shape({ keys: list(key), nextCursor: optional(text) });
/** `PATCH|DELETE /api/keys/{keyId}` */
export const readKey = shape({ key });
/** `POST /api/keys` and `POST /api/keys/{keyId}/rotate` */
export const readIssuedKey = shape({ key, token: text });

/** `GET /api/config`: only the port of the public listener. */
export const readPublicPort = shape({ settings: shape({ server: shape({ port: shape({ value: number }) }) }) });

/** `GET /api/audit` */
export const readAudit = shape({
  entries: list(shape({ at: time, who: text, action: text, target: text, from: anything, to: anything })),
});

/** `GET /api/whoami` */
export const readWhoAmI = shape({ who: text });

/** `{"error":{"message"}}` */
export const readFailure = shape({ error: shape({ message: text }) });

/** @typedef {ReturnType<typeof readReadiness>} Readiness */
/** @typedef {ReturnType<typeof readFleet>['members'][number]} Instance */
/** @typedef {ReturnType<typeof readHistory>} History */
/** @typedef {ReturnType<typeof readPulse>} Pulse */
/** @typedef {ReturnType<typeof readStats>} Stats */
/** @typedef {ReturnType<typeof readTtl>} Ttl */
/** @typedef {ReturnType<typeof curvePoint>} CurvePoint */
/** @typedef {ReturnType<typeof readAdvice>['classes'][number]} ClassAdvice */
/** @typedef {ReturnType<typeof readTop>} Top */
/** @typedef {ReturnType<typeof readMaintenance>} Maintenance */
/** @typedef {ReturnType<typeof copy>} Copy */
/** @typedef {ReturnType<typeof readExplanation>} Explanation */
/** @typedef {ReturnType<typeof key>} Key */
/** @typedef {ReturnType<typeof readIssuedKey>} IssuedKey */
/** @typedef {ReturnType<typeof readAudit>['entries'][number]} AuditEntry */
