/** What the gateway's interface answers, endpoint by endpoint. Pure. */
import { anything, flag, list, mapOf, number, optional, shape, text, time } from './read.js';

/** The classes of answers, in the order in which they are shown everywhere. */
export const CLASSES = /** @type {const} */ ([
  'list',
  'evaluation',
  'transcript',
  'scorecard',
  'rubric',
  'dealInsights',
  'notFound',
]);

const curvePoint = shape({
  freshMs: number,
  hitRatio: number,
  upstreamRps: number,
  ageP90Ms: number,
  outdatedRatio: optional(number),
  extrapolated: flag,
});

/** `GET /api/cache/advice` */
export const readAdvice = shape({
  at: time,
  processes: number,
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

/** `GET /api/cache/history` */
export const readHistory = shape({
  stepMs: number,
  points: list(
    shape({
      at: time,
      classes: mapOf(shape({ reads: number, hits: number, storeCalls: number, failed: number })),
    }),
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
      outcomes: mapOf(number),
      misses: mapOf(number),
      storeCalls: number,
      memory: shape({ entries: number, bytes: number }),
    }),
  ),
});

/** One class of `GET /api/cache/ttl`. */
export const readClassTimes = shape({
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
});

/** `GET /api/cache/ttl` */
export const readTimes = shape({ classes: list(readClassTimes) });

/** `POST /api/cache/purge` */
export const readPurge = shape({ entries: number, bytes: number, tags: list(text), mode: text, dryRun: flag });

/** `GET|PUT|DELETE /api/cache/maintenance` */
export const readMaintenance = shape({
  active: flag,
  until: optional(time),
  leftMs: number,
  by: optional(text),
  since: optional(time),
});

/** `GET /api/cache/top` */
export const readTop = shape({
  since: time,
  keys: list(shape({ key: text, class: text, storeCalls: number, storeMs: number })),
  routes: list(shape({ route: text, storeCalls: number, storeMs: number })),
});

/** `GET /api/fleet` */
export const readFleet = shape({
  members: list(shape({ id: text, host: text, pid: number, version: text, startedAt: time, status: text, self: flag })),
});

/** `GET /readyz` */
export const readReadiness = shape({
  status: text,
  dependencies: list(shape({ name: text, status: text, since: optional(time), detail: text })),
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
export const readKeys = shape({ keys: list(key) });
/** `PATCH|DELETE /api/keys/{keyId}` */
export const readKey = shape({ key });
/** `POST /api/keys` */
export const readIssuedKey = shape({ key, token: text });

/** What is needed of `GET /api/config`. */
export const readPublicPort = shape({ settings: shape({ server: shape({ port: shape({ value: number }) }) }) });

/** `GET /api/audit` */
export const readAudit = shape({
  entries: list(shape({ at: time, who: text, action: text, target: text, from: anything, to: anything })),
});

const copy = shape({
  state: text,
  answer: text,
  visible: optional(flag),
  ageMs: number,
  ttlMs: number,
  filledAt: time,
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
  path: text,
  route: text,
  key: text,
  class: text,
  next: shape({ text, store: text, miss: optional(text) }),
  memory: optional(copy),
  redis: shape({ state: text, entry: optional(copy) }),
  flight: shape({ since: optional(time), justFailed: flag }),
  lastMiss: optional(shape({ reason: text, at: time })),
  times: readClassTimes,
});

/** `{"error":{"message"}}` */
export const readFailure = shape({ error: shape({ message: text }) });

/** @typedef {ReturnType<typeof curvePoint>} CurvePoint */
/** @typedef {ReturnType<typeof readAdvice>['classes'][number]} ClassAdvice */
/** @typedef {ReturnType<typeof readHistory>} History */
/** @typedef {ReturnType<typeof readPulse>} Pulse */
/** @typedef {ReturnType<typeof readStats>} Stats */
/** @typedef {ReturnType<typeof readClassTimes>} ClassTimes */
/** @typedef {ReturnType<typeof readPurge>} PurgeResult */
/** @typedef {ReturnType<typeof copy>} Copy */
/** @typedef {ReturnType<typeof readExplanation>} Explanation */
/** @typedef {ReturnType<typeof readMaintenance>} Maintenance */
/** @typedef {ReturnType<typeof readKey>['key']} Key */
/** @typedef {ReturnType<typeof readAudit>['entries'][number]} AuditEntry */
/** @typedef {ReturnType<typeof readFleet>['members'][number]} Member */
/** @typedef {ReturnType<typeof readReadiness>} Readiness */
