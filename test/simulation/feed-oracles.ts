/** The promises of the feed of changes, checked against what its followers have seen. */
import { BEGIN_BEFORE_MS } from '../../src/changes/feed.ts';
import { Bounds, type Violation } from './bounds.ts';
import { type AnnouncedVersion, type History, type ReadEvent } from './history.ts';
import { describe } from './record-oracles.ts';
import type { Life } from './world.ts';

/** Beyond that the ages of copies are unknown (C9). */
const MOST_SPREAD_MS = 2000;

/** After a loss in Redis the feed may begin anew, and whoever follows it reads all. */
export function feedOracles(life: Life): readonly Violation[] {
  const bounds = new Bounds(life);
  return bounds.isLost(0) ? [] : [...onceOracle(life), ...newsOracle(life, bounds)];
}

/** Each announced change is in the feed once. */
function* onceOracle({ history, calmMs, failure }: Life): Iterable<Violation> {
  for (const { begunMs, lastReadMs, events, expiredMs } of history.followings) {
    if (expiredMs !== null) yield { rule: 'feed', atMs: expiredMs, text: 'the cursor of a follower has expired' };
    if (begunMs === null || lastReadMs < calmMs || failure !== null) continue;
    for (const id of history.states.keys()) {
      const ofRecord = history.announced.filter((one) => one.id === id);
      const least = ofRecord.filter(({ ackMs, startedMs }) => ackMs !== null && startedMs > begunMs).length;
      // The place of now has what came a short while ago still before it.
      const most = ofRecord.filter(({ ackMs }) => (ackMs ?? Infinity) > begunMs - BEGIN_BEFORE_MS).length;
      const found = events.filter((event) => event.id === id && event.kind === 'call').length;
      if (found >= least && found <= most) continue;
      const text = `${id} is ${found} times in the feed, and was announced ${least} to ${most} times`;
      yield { rule: 'feed', atMs: lastReadMs, text };
    }
  }
}

/**
 * Who reads on an event gets no record from before the change, unless the store cannot be asked. A change is announced of one
 * workspace: so a record that has moved without a word is another matter.
 */
function* newsOracle({ history }: Life, bounds: Bounds): Iterable<Violation> {
  if (bounds.spreadMs > MOST_SPREAD_MS) return;
  for (const read of history.reads) {
    const { result, startedMs, endedMs } = read;
    const news = newsOf(read, history);
    if (news === null || hasMoved(news.id, history)) continue;
    if (result?.kind !== 'shown' || endedMs === null || !bounds.isWellFor(read)) continue;
    // An old copy is served, and said to be one, if it cannot be renewed.
    if (result.outcome === 'changed' && !bounds.isStoreWell(startedMs, endedMs)) continue;
    const version = result.shown[0]?.version ?? 0;
    if (version >= news.version) continue;
    const text = `${describe(read)} got #${version} (${result.outcome}) on the event of #${news.version}`;
    yield { rule: 'C11', atMs: endedMs, text: `${text}, announced at ${Bounds.shown(startedMs)}` };
  }
}

/** The announcement of an event; the earliest one, if it may be of several. */
function newsOf({ eventAtMs, target }: ReadEvent, history: History): AnnouncedVersion | null {
  if (eventAtMs === null) return null;
  // Events have whole milliseconds.
  const found = history.announced.filter(({ id, startedMs, ackMs }) => {
    return id === target.id && Math.floor(startedMs) <= eventAtMs && (ackMs ?? Infinity) >= eventAtMs;
  });
  return found.toSorted((one, other) => one.version - other.version)[0] ?? null;
}

function hasMoved(id: string, history: History): boolean {
  return new Set(history.states.get(id)?.map(({ workspace }) => workspace)).size > 1;
}
