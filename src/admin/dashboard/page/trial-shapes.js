/** What the gateway's interface answers about trials of a time. Pure. */
import { list, number, optional, shape, text, time } from './read.js';

const arm = shape({
  fresh: text,
  freshMs: number,
  reads: number,
  hitRatio: optional(number),
  storeCalls: number,
  storeFailures: number,
  storeCallsPerRead: optional(number),
  storeFailureRatio: optional(number),
});
const predicted = optional(shape({ hitRatio: number, storeCallsPerRead: number }));

/** `POST /api/cache/trials`, `DELETE /api/cache/trials/{class}`, `POST /api/cache/trials/{class}/adopt` */
export const readTrial = shape({
  id: text,
  class: text,
  state: text,
  reason: optional(text),
  fresh: text,
  freshMs: number,
  share: number,
  startedAt: time,
  startedBy: text,
  until: time,
  endedAt: optional(time),
  limits: shape({ maxStoreLoad: number, maxErrors: number }),
  arms: shape({ trial: arm, control: arm }),
  predicted: shape({ trial: predicted, control: predicted }),
});

/** `GET /api/cache/trials` */
export const readTrials = shape({ trials: list(readTrial) });

/** @typedef {ReturnType<typeof readTrial>} Trial */
/** @typedef {ReturnType<typeof arm>} Arm */
/** @typedef {ReturnType<typeof predicted>} Predicted */
