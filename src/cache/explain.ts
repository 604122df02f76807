/** What the cache holds of a question and what it would do with it now, for operators. It only looks. */
import type { Clock } from '../clock.ts';
import { jitteredFreshMs, jitterOf } from './classify.ts';
import { nextRead, type NextRead } from './explain-next.ts';
import type { LastMiss } from './last-misses.ts';
import type { Maintenance, MaintenanceWatch } from './maintenance.ts';
import type { MemoryTier } from './memory-tier.ts';
import type { Question } from './question.ts';
import type { FlightView } from './reader.ts';
import { answers, classOf, judge, type Judgement, type Law, type StoredEntry } from './stored.ts';
import type { Tag } from './tags.ts';
import type { CacheClass, CacheTtl } from './ttl-policy.ts';
import { isVisible } from './visibility.ts';

/** What the fleet's tier holds of a key. */
export interface FleetHolding {
  readonly held: { readonly stored: StoredEntry; readonly bytes: number; readonly keptForMs: number | null } | null;
  /** Something lies there that is no entry. It counts as nothing. */
  readonly isBroken: boolean;
  /** How long the right to ask the store is still held by some process; null where nobody has it. */
  readonly leaseLeftMs: number | null;
  /** Whether a call has failed so lately that no process asks again yet. */
  readonly hasJustFailed: boolean;
}

/** Rejects where the fleet's tier can't be asked. */
export interface FleetInspector {
  inspect(key: string): Promise<FleetHolding>;
}

export interface ExplainParts extends Law {
  readonly memory: Pick<MemoryTier, 'peek' | 'peekAbsenceTo' | 'wasEvicted'>;
  /** Null for a gateway that is alone. */
  readonly inspector: FleetInspector | null;
  readonly flightOf: (key: string) => FlightView;
  readonly lastMissOf: (key: string) => LastMiss | null;
  readonly maintenance: MaintenanceWatch;
  readonly clock: Clock;
}

/** A copy in one tier. */
export interface Copy extends Judgement {
  readonly isFound: boolean;
  readonly class: CacheClass;
  /** Whether it may be served to whom the explanation is for; null where nobody was named. */
  readonly isVisible: boolean | null;
  readonly filledAtMs: number;
  readonly fetchedAtMs: number;
  readonly tags: readonly Tag[];
  /** What it takes there, with what was made from it. */
  readonly bytes: number;
  /** A soft purge has ended its freshness. */
  readonly isOutdated: boolean;
  /** By how much this entry's freshness is shorter than its class's. */
  readonly jitterMs: number;
  readonly freshUntilMs: number;
  readonly staleUntilMs: number;
  readonly errorUntilMs: number;
}

/** `alone`: there is no fleet; `unreachable`: it can't be asked now. */
export type SharedView =
  | { readonly state: 'alone' | 'unreachable' }
  | {
      readonly state: 'asked';
      readonly copy: (Copy & { readonly keptForMs: number | null }) | null;
      readonly isBroken: boolean;
      readonly leaseLeftMs: number | null;
      readonly hasJustFailed: boolean;
    };

export interface Explanation {
  readonly atMs: number;
  readonly key: string;
  /** Whose times are in force for the answer: of what is held, else of what is asked for. */
  readonly class: CacheClass;
  readonly times: CacheTtl;
  readonly memory: Copy | null;
  /** This process knows that the record is of another workspace than those asked for: for whom it is explained, none. */
  readonly isKnownForeign: boolean;
  readonly shared: SharedView;
  readonly flight: FlightView;
  readonly lastMiss: LastMiss | null;
  readonly wasEvicted: boolean;
  readonly maintenance: Maintenance | null;
  readonly next: NextRead;
}

/** `workspaceIds`: those that are asked for, in lower case; null where it is not known who asks. Rejects never. */
export async function explain(
  question: Question<unknown>,
  workspaceIds: readonly string[] | null,
  parts: ExplainParts,
): Promise<Explanation> {
  const { key } = question;
  const shared = await lookAtFleet({ question, workspaceIds }, parts);
  // What lies here is looked at last, in one go: none of it changes meanwhile.
  const { clock, memory, maintenance } = parts;
  const local = memory.peek(key);
  const facts = {
    atMs: clock.nowMs(),
    memory: local === undefined ? null : copyOf({ question, workspaceIds }, local, parts),
    isKnownForeign: isKnownForeign({ question, workspaceIds }, parts),
    shared,
    flight: parts.flightOf(key),
    wasEvicted: memory.wasEvicted(key),
    maintenance: maintenance.current(),
  };
  const cacheClass = (facts.memory ?? copyIn(shared))?.class ?? question.kind;
  const times = parts.times.of(cacheClass);
  const next = nextRead({ ...facts, times });
  return { ...facts, key, class: cacheClass, times, lastMiss: parts.lastMissOf(key), next };
}

/** The copy in the fleet's tier, where there is one. */
export function copyIn(shared: SharedView): Copy | null {
  return shared.state === 'asked' ? shared.copy : null;
}

interface Asked {
  readonly question: Question<unknown>;
  readonly workspaceIds: readonly string[] | null;
}

async function lookAtFleet(asked: Asked, parts: ExplainParts): Promise<SharedView> {
  if (parts.inspector === null) return { state: 'alone' };
  try {
    const { held, ...rest } = await parts.inspector.inspect(asked.question.key);
    const copy = held === null ? null : copyOf(asked, held, parts);
    return { state: 'asked', ...rest, copy: copy === null ? null : { ...copy, keptForMs: held?.keptForMs ?? null } };
  } catch {
    return { state: 'unreachable' };
  }
}

function isKnownForeign({ question, workspaceIds }: Asked, { memory, ...law }: ExplainParts): boolean {
  const verdict = workspaceIds === null ? undefined : memory.peekAbsenceTo(workspaceIds, question.key);
  return verdict !== undefined && judge(question.keyHash, verdict, law.clock.nowMs(), law).usability === 'fresh';
}

interface Holding {
  readonly stored: StoredEntry;
  readonly bytes: number;
}

/** Null for what is no answer to the question. */
function copyOf({ question, workspaceIds }: Asked, { stored, bytes }: Holding, parts: ExplainParts): Copy | null {
  if (!answers(question, stored)) return null;
  const { entry, kind, tags, fetchedAtMs, position } = stored;
  const { filledAtMs } = entry;
  const cacheClass = classOf(kind, entry);
  const times = parts.times.of(cacheClass);
  const freshMs = jitteredFreshMs(times, jitterOf(question.keyHash, filledAtMs));
  const freshUntilMs = filledAtMs + freshMs;
  return {
    ...judge(question.keyHash, stored, parts.clock.nowMs(), parts),
    isFound: entry.answer.kind === 'found',
    class: cacheClass,
    isVisible: workspaceIds === null ? null : isVisible(question, stored, workspaceIds),
    filledAtMs,
    fetchedAtMs,
    tags,
    bytes,
    isOutdated: parts.purges.since(position, tags) === 'soft',
    jitterMs: times.freshMs - freshMs,
    freshUntilMs,
    staleUntilMs: freshUntilMs + times.staleMs,
    errorUntilMs: freshUntilMs + Math.max(times.staleMs, times.errorMs),
  };
}
