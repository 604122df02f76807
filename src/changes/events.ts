/** The events of the feed that changes amount to. Pure: no I/O. */
import type { RecordChange } from '../journal/journal.ts';

export const EVENT_KINDS = ['call', 'transcript', 'scorecard'] as const;
export const EVENT_CHANGES = ['created', 'updated', 'deleted'] as const;

/** An event as consumers see it. */
export interface FeedEvent {
  /** Names the call. */
  readonly id: string;
  readonly kind: (typeof EVENT_KINDS)[number];
  readonly change: (typeof EVENT_CHANGES)[number];
}

export interface AnnouncedEvent extends FeedEvent {
  /** Its place among all events of the announcement, whatever their workspaces. */
  readonly order: number;
}

/** By workspace, in the order in which they were announced. */
export type EventsByWorkspace = ReadonlyMap<string, readonly AnnouncedEvent[]>;

const EVALUATION = 'evaluation:';

/**
 * One event per part; deal insights and rubrics have none. A deletion is one event of the call; a record that has moved is
 * deleted in one workspace and then created in the other. The same event twice is one, in the place of the last: a call that
 * was created, deleted and created again is there.
 */
export function eventsOf(changes: readonly RecordChange[]): EventsByWorkspace {
  const events = new Map<string, Map<string, AnnouncedEvent>>();
  let order = 0;
  const add = (workspace: string, event: FeedEvent): void => {
    const known = events.get(workspace) ?? new Map<string, AnnouncedEvent>();
    const name = `${event.kind} ${event.change} ${event.id}`;
    known.delete(name);
    order += 1;
    events.set(workspace, known.set(name, { ...event, order }));
  };
  for (const { tag, workspace, kinds, isCreated, isDeleted, previousWorkspace } of changes) {
    if (!tag.startsWith(EVALUATION)) continue;
    const id = tag.slice(EVALUATION.length);
    const isMoved = previousWorkspace !== null;
    if (isMoved) add(previousWorkspace, { id, kind: 'call', change: 'deleted' });
    if (isDeleted) add(workspace, { id, kind: 'call', change: 'deleted' });
    for (const kind of isDeleted ? [] : EVENT_KINDS) {
      const isNamed = isMoved || kinds.includes(kind === 'call' ? 'evaluation' : kind);
      if (isNamed) add(workspace, { id, kind, change: isMoved || isCreated ? 'created' : 'updated' });
    }
  }
  return new Map([...events].map(([workspace, known]) => [workspace, [...known.values()]]));
}
