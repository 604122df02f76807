/** An explanation as the interface shows it. Pure. */
import type { Copy, Explanation } from '../cache/explain.ts';

/** `times` are those of the explanation's class, as the interface shows them. */
export function viewOfExplanation(explanation: Explanation, times: object): object {
  const { atMs, key, memory, shared, flight, lastMiss, maintenance, next } = explanation;
  return {
    at: iso(atMs),
    key,
    class: explanation.class,
    next: { text: next.text, from: next.from, store: next.store, miss: next.miss },
    memory: memory === null ? null : viewOfCopy(memory),
    redis: viewOfShared(shared),
    knownForeign: explanation.isKnownForeign,
    flight: {
      since: flight.sinceMs === null ? null : iso(flight.sinceMs),
      leaseLeftMs: shared.state === 'asked' ? shared.leaseLeftMs : null,
      justFailed: flight.hasJustFailed || (shared.state === 'asked' && shared.hasJustFailed),
    },
    lastMiss: lastMiss === null ? null : { reason: lastMiss.reason, at: iso(lastMiss.atMs) },
    evicted: explanation.wasEvicted,
    times,
    maintenance: maintenance === null ? null : { until: iso(maintenance.untilMs), by: maintenance.by },
  };
}

function viewOfShared(shared: Explanation['shared']): object {
  if (shared.state !== 'asked') return { state: shared.state, entry: null };
  const { copy, isBroken } = shared;
  if (copy === null) return { state: isBroken ? 'unreadable' : 'asked', entry: null };
  return { state: 'asked', entry: { ...viewOfCopy(copy), keptForMs: copy.keptForMs } };
}

function viewOfCopy(copy: Copy): object {
  const { state, isOutdated } = copy;
  const isPurged = state === 'purged';
  return {
    state,
    answer: copy.isFound ? 'found' : 'absent',
    visible: copy.isVisible,
    ageMs: copy.ageMs,
    ttlMs: copy.ttlMs,
    filledAt: iso(copy.filledAtMs),
    fetchedAt: iso(copy.fetchedAtMs),
    // The first read after that starts a refresh. What a soft purge has ended is refreshed by the next one.
    freshUntil: isPurged || isOutdated ? null : iso(copy.freshUntilMs),
    staleUntil: isPurged ? null : iso(copy.staleUntilMs),
    errorUntil: isPurged ? null : iso(copy.errorUntilMs),
    jitterMs: copy.jitterMs,
    softPurged: isOutdated,
    tags: copy.tags,
    bytes: copy.bytes,
  };
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
