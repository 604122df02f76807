/**
 * How keys are doing: whether gateways learn of their changes, whether Redis has lost some, and until when they stay good
 * without it.
 */
import { type KeyLoss, LOSS_ADVICE, lossText } from '../keys/key.ts';
import type { Connectivity } from '../redis/connectivity.ts';
import type { Refusal } from '../redis/refusal.ts';
import { formatDuration } from '../time/duration.ts';
import { degraded, type DependencyState } from './health.ts';

export interface KeysReading {
  /** To the state Redis. */
  readonly connectivity: Connectivity;
  /** Why it takes no changes although it answers; null if it takes them. */
  readonly refusal: (Refusal & { readonly kind: 'full' | 'read-only' }) | null;
  readonly loss: KeyLoss | null;
  /** How many keys there are; null if none were counted yet. */
  readonly known: number | null;
  /** The policy by which Redis may have evicted keys; null if it evicts none, as far as is known. */
  readonly evictionPolicy: string | null;
  /** Since when it does not answer; null if it has confirmed no key before. */
  readonly aloneSinceMs: number | null;
  readonly nowMs: number;
  readonly graceMs: number;
  readonly hasDemoKeys: boolean;
}

export function keysState(reading: KeysReading): DependencyState {
  const { connectivity, refusal, loss } = reading;
  if (connectivity === 'alone' && refusal === null) return keysWhileAlone(reading);
  if (connectivity === 'deaf') {
    return degraded(
      'keys: changes may be missed; each key is confirmed before it is used',
      'changes may be missed: each key is confirmed at Redis before it is used',
    );
  }
  if (loss !== null && !loss.isAcknowledged) {
    const which = loss.left === 0 ? 'all' : 'some';
    const { evictionPolicy } = reading;
    const cause =
      evictionPolicy === null
        ? ''
        : `; it has probably evicted them (maxmemory-policy ${evictionPolicy}): set noeviction there first`;
    const detail = `${lossText(loss, reading.known ?? 0)}${cause}; ${LOSS_ADVICE}`;
    return degraded(`keys: Redis lost ${which} of them, and consumers get 401`, detail, {
      isCritical: true,
      sinceMs: loss.atMs,
      overMessage: 'keys: they are back, or an operator knows of the loss',
    });
  }
  if (refusal === null) return { status: 'ok', detail: 'changes arrive' };
  const over = { overMessage: 'keys: they can be issued, changed and revoked again' };
  if (refusal.kind === 'full') {
    return degraded(
      'keys: Redis is full; none can be created, activated, edited, rotated or imported',
      `Redis ${refusal.finding}; keys stay good, and can be revoked and deprecated; none can be created, activated, edited, rotated or imported`,
      over,
    );
  }
  return degraded(
    'keys: Redis refuses changes; none can be issued, changed or revoked',
    `Redis ${refusal.finding}; keys that are known stay good; none can be issued, changed or revoked`,
    over,
  );
}

function keysWhileAlone({ aloneSinceMs, nowMs, graceMs, hasDemoKeys }: KeysReading): DependencyState {
  const allowed = hasDemoKeys ? 'only the demo keys are let in' : 'no key is let in';
  if (aloneSinceMs === null) {
    return degraded(
      `keys: Redis could not be asked since the start; ${allowed} until it answers`,
      `Redis could not be asked since this process started: ${allowed} until it answers`,
      { isCritical: true },
    );
  }
  const grace = formatDuration(graceMs);
  const untilMs = aloneSinceMs + graceMs;
  if (nowMs > untilMs) {
    const message = `keys: Redis could not be asked for too long; ${allowed} until it answers`;
    return degraded(message, `Redis could not be asked for ${grace}: ${allowed}`, { isCritical: true });
  }
  const others = hasDemoKeys ? 'besides them, only the demo keys are let in' : 'no other key is let in';
  return degraded(
    `keys: Redis cannot be asked; only keys that it confirmed lately ${hasDemoKeys ? 'and the demo keys ' : ''}are let in`,
    `Redis cannot be asked: keys that it confirmed within ${grace} stay good, the last of them until ${new Date(untilMs).toISOString()}; ${others}`,
    { deadlineMs: untilMs },
  );
}
