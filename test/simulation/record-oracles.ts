/**
 * The rules (docs/rules.md), held against what the clients and operators of a simulated fleet have seen: who may see what, and
 * how old it may be. Each rule has its exceptions as it names them, and no others.
 */
import { type Change, type ReadEvent, type RecordState, type Shown } from './history.ts';
import { Bounds, type Violation } from './bounds.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { TIMES } from './times.ts';
import type { Life } from './world.ts';

/** A read that has shown something. */
interface Showing {
  readonly read: ReadEvent;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly outcome: string;
  readonly shown: readonly Shown[];
}

/** How long a negative entry is used, and the slowest call that may have brought it. */
const ABSENT_MS = TIMES.notFound.freshMs + 2000;

export function recordOracles(life: Life): readonly Violation[] {
  const { history } = life;
  const bounds = new Bounds(life);
  const violations: Violation[] = [];
  const showings = showingsOf(history.reads);
  for (const showing of showings) {
    const { read } = showing;
    const fault = (rule: string, text: string): void => {
      violations.push({ rule, atMs: showing.endedMs, text: `${describe(read)} ${text}` });
    };
    for (const one of showing.shown) {
      const state = history.stateOf(one);
      if (state === undefined || (read.target.id !== null && read.target.id !== one.id)) {
        fault('C4', `was shown ${nameOf(one)}, which it did not ask for`);
        continue;
      }
      if (state.workspace === null || !read.workspaces.includes(state.workspace)) {
        fault('K7a', `was shown ${nameOf(one)} of another workspace`);
      }
      if (state.untilMs < showing.startedMs - bounds.oldestMs(read.target.kind)) {
        fault(
          'C2',
          `was shown ${nameOf(one)}, which was over ${Math.round(showing.startedMs - state.untilMs)} ms before`,
        );
      }
      for (const change of history.changes) {
        if (isAfterPurge(change, showing, state, life) && bounds.isKnown(change, read)) {
          fault('C6', `was shown ${nameOf(one)} after the purge of ${purgedTag(change)}`);
        }
      }
      const earlier = disowned(showing, state, life, bounds);
      if (earlier !== null)
        fault('C4', `was shown ${nameOf(one)} after ${describe(earlier)} had heard that it is gone`);
      const news = changedBefore(showing, state, showings, bounds);
      if (news !== null) {
        fault('C11', `was shown ${nameOf(one)} after ${describe(news.read)} had been shown ${nameOf(news.shown[0])}`);
      }
    }
    if (read.target.kind === 'list') missing(showing, life, bounds, fault);
  }
  for (const read of history.reads) absent(read, life, bounds, violations);
  return violations;
}

function showingsOf(reads: readonly ReadEvent[]): readonly Showing[] {
  return reads.flatMap((read) => {
    const { result, startedMs, endedMs } = read;
    if (result?.kind !== 'shown' || endedMs === null) return [];
    return [{ read, startedMs, endedMs, outcome: result.outcome, shown: result.shown }];
  });
}

export function describe({ process, key, target, startedMs }: ReadEvent): string {
  return `${key}, at ${process}, asking for ${target.kind} ${target.id ?? ''} at ${Bounds.shown(startedMs)},`;
}

function nameOf(shown: Shown | undefined): string {
  return `${shown?.id}#${shown?.version}`;
}

/** C6: a purge is in force here once it is acknowledged, and elsewhere within a second; what was fetched before is gone. */
function isAfterPurge(change: Change, { read, startedMs }: Showing, state: RecordState, { history }: Life): boolean {
  const tag = purgedTag(change);
  if (tag === null || state.untilMs >= change.startedMs || !Bounds.isInForce(change, read.process, startedMs))
    return false;
  const isList = read.target.kind === 'list';
  if (tag === 'all') return true;
  if (tag === 'class:evaluation') return read.target.kind === 'evaluation';
  if (tag === `workspace:${WORKSPACE_A}`) {
    return isList ? read.workspaces.includes(WORKSPACE_A) : state.workspace === WORKSPACE_A;
  }
  if (tag !== `evaluation:${state.id}`) return false;
  // The lists are those of the workspace that a copy tells: of one that has moved, perhaps not all.
  const workspaces = new Set(history.states.get(state.id)?.map(({ workspace }) => workspace));
  return !isList || workspaces.size === 1;
}

function purgedTag({ what }: Change): string | null {
  return what.kind === 'purge' ? what.tag : null;
}

/**
 * C4: nothing outlives what the store has said to a reader of that workspace; returns the read that it was said to. The clocks of
 * the processes say which of two answers is the later one (C9).
 */
function disowned(
  { read, startedMs }: Showing,
  state: RecordState,
  { history }: Life,
  bounds: Bounds,
): ReadEvent | null {
  const said = history.reads.find((other) => {
    const { target, result, endedMs, workspaces } = other;
    if (result?.kind !== 'absent' || result.outcome !== 'miss' || endedMs === null) return false;
    const isOfSame = target.kind === read.target.kind && target.id === state.id;
    const isLater = other.startedMs > state.untilMs + bounds.spreadMs;
    if (!isOfSame || !workspaces.includes(state.workspace ?? '') || !isLater) return false;
    const isInForce = startedMs >= endedMs + (read.process === other.process ? 0 : Bounds.ELSEWHERE_MS);
    return isInForce && bounds.isWell(other.process, other.startedMs, endedMs) && bounds.isWellFor(read);
  });
  return said !== undefined && !bounds.isLost(said.startedMs) ? said : null;
}

/**
 * C11: a reader that has seen a change of a call gets no part from before it, unless it cannot be renewed; returns what it has
 * seen. Only a change between two answers that were shown counts, and not that of a call that changes with every answer.
 */
function changedBefore(
  { read, startedMs, outcome }: Showing,
  part: RecordState,
  showings: readonly Showing[],
  bounds: Bounds,
): Showing | null {
  const { history } = bounds;
  if (read.target.kind !== 'transcript' || outcome === 'changed') return null;
  const states = history.states.get(part.id) ?? [];
  if (states.length > 5 || !bounds.isWellFor(read)) return null;
  const seen = (before: number, is: (state: RecordState) => boolean, after = 0): Showing | undefined =>
    showings.find((one) => {
      if (one.read.target.kind === 'transcript' || one.startedMs < after || one.endedMs > before) return false;
      const found = one.shown.map((each) => history.stateOf(each)).find((state) => state?.id === part.id);
      return found !== undefined && found.workspace === part.workspace && is(found);
    });
  const news = seen(startedMs, (state) => {
    return state.fromMs >= part.untilMs;
  });
  if (news === undefined || bounds.isLost(0)) return null;
  const isInForce = startedMs >= news.endedMs + (news.read.process === read.process ? 0 : Bounds.ELSEWHERE_MS);
  if (!isInForce || !bounds.isWell(news.read.process, news.startedMs, news.endedMs)) return null;
  const newer = history.stateOf(news.shown.find(({ id }) => id === part.id) ?? part);
  const isOlder = (state: RecordState): boolean => state.version < (newer?.version ?? 0);
  if (seen(news.startedMs, isOlder) === undefined) return null;
  // An announced change that no answer has shown since may stand for a silent one after it.
  const isExplained = history.announced.some(({ id, startedMs: atMs }) => {
    return id === part.id && atMs <= news.startedMs && seen(news.startedMs, isOlder, atMs) === undefined;
  });
  if (isExplained) return null;
  // A purge of the call also ends what is known of its last answers.
  const isPurged = history.changes.some((change) => {
    const tag = purgedTag(change);
    const isOfCall =
      tag !== null && tag !== 'class:evaluation' && (!tag.startsWith('evaluation:') || tag.endsWith(part.id));
    return isOfCall && change.startedMs <= news.endedMs;
  });
  return isPurged ? null : news;
}

/** A list has all records that were in its workspaces the whole time of which it may be. */
function missing(
  { read, startedMs, endedMs, shown }: Showing,
  { history }: Life,
  bounds: Bounds,
  fault: (rule: string, text: string) => void,
): void {
  const fromMs = startedMs - bounds.oldestMs('list');
  for (const id of history.states.keys()) {
    const wasThere = (history.states.get(id) ?? [])
      .filter((state) => state.untilMs >= fromMs && state.fromMs <= endedMs)
      .every(({ workspace }) => workspace !== null && read.workspaces.includes(workspace));
    if (wasThere && !shown.some((one) => one.id === id))
      fault('C2', `got a list without ${id}, which was always in it`);
  }
}

/** An absent answer is of a time, not long ago, in which there was no such record for the reader. */
function absent(read: ReadEvent, { history }: Life, bounds: Bounds, violations: Violation[]): void {
  const { result, target, endedMs, startedMs, workspaces } = read;
  if (result?.kind !== 'absent' || endedMs === null || target.id === null) return;
  const fromMs = startedMs - ABSENT_MS - bounds.spreadMs;
  const wasThere = (history.states.get(target.id) ?? [])
    .filter((state) => state.untilMs >= fromMs && state.fromMs <= endedMs)
    .every(({ workspace }) => workspace !== null && workspaces.includes(workspace));
  if (wasThere) violations.push({ rule: 'C2', atMs: endedMs, text: `${describe(read)} was told that it is not there` });
}
