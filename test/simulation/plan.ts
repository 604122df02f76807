/** The plan of a simulated fleet, drawn from its seed before it begins: so the same seed plans the same, whatever code runs. */
import { SeededRandom } from '../support/random.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import type { Target } from './history.ts';
import { announceChanges, SCENES } from './scenes.ts';

export const RECORDS = ['ev_1', 'ev_2', 'ev_3'] as const;

/** `slot`: the place of a gateway in the fleet, whichever process has it then. */
export type Action =
  | { readonly do: 'read'; readonly slot: number; readonly key: number; readonly target: Target }
  | { readonly do: 'edit' | 'delete' | 'move'; readonly id: string }
  /** The record is edited, and the store announces it: twice, if its first call seems to have failed. */
  | { readonly do: 'announce'; readonly slots: readonly number[]; readonly id: string; readonly isNamed: boolean }
  | { readonly do: 'follow' }
  | { readonly do: 'purge'; readonly slot: number; readonly tag: string }
  | { readonly do: 'end-key'; readonly slot: number; readonly key: number }
  | { readonly do: 'times'; readonly slot: number; readonly freshMs: number }
  | { readonly do: 'maintain'; readonly slot: number; readonly forMs: number }
  | { readonly do: 'roll'; readonly slot: number }
  | { readonly do: 'pause'; readonly slot: number; readonly forMs: number }
  | { readonly do: 'kill'; readonly slot: number; readonly forMs: number }
  | { readonly do: 'step-clock'; readonly slot: number; readonly byMs: number }
  | { readonly do: 'store'; readonly mode: 'slow' | 'failing'; readonly forMs: number }
  | { readonly do: 'redis-late'; readonly host: number; readonly lateMs: number; readonly forMs: number }
  | { readonly do: 'redis-cut'; readonly host: number; readonly slot: number; readonly forMs: number }
  | { readonly do: 'redis-down'; readonly host: number; readonly forMs: number; readonly lostMs: number }
  | { readonly do: 'redis-emptied'; readonly host: number };

export interface Planned {
  /** From the beginning of the main part. */
  readonly atMs: number;
  readonly action: Action;
}

export interface Plan {
  readonly seed: number;
  readonly gateways: number;
  /** Whether the cache has a Redis of its own. */
  readonly hasTwoRedis: boolean;
  /** By how much the clock of each gateway is ahead. */
  readonly aheadMs: readonly number[];
  /** How many of a thousand messages are lost, late or doubled. */
  readonly messageFaults: number;
  /** So many renewals of announced changes a second, by all together. */
  readonly refreshRate: number;
  readonly actions: readonly Planned[];
}

/** The keys at the beginning: by place, the workspaces that each may see, and its limit per minute. */
export const KEYS: readonly { readonly workspaces: readonly string[]; readonly perMinute: number | null }[] = [
  { workspaces: [WORKSPACE_A], perMinute: null },
  { workspaces: [WORKSPACE_A], perMinute: 7 },
  { workspaces: [WORKSPACE_B], perMinute: null },
  { workspaces: [WORKSPACE_A, WORKSPACE_B], perMinute: null },
];

export const MAIN_MS = 5000;

/** So many of all fleets have a scene. */
const SCENES_SHARE = 0.2;
/** In so many of all fleets the store announces changes. */
const ANNOUNCING_SHARE = 0.3;

/** One kind of trouble in the life of a fleet; a seed has some of them. */
const TROUBLES = ['pauses', 'kills', 'clocks', 'store', 'late', 'cut', 'down', 'emptied', 'messages'] as const;
type Trouble = (typeof TROUBLES)[number];

export function planOf(seed: number): Plan {
  const random = new SeededRandom(seed);
  const gateways = random.pick(2, 2, 2, 2, 3, 3, 3, 4, 5);
  const hasTwoRedis = random.next() < 0.4;
  const hosts = hasTwoRedis ? 1 : 0;
  // A quarter of all fleets have no trouble but their own concurrency.
  const share = random.pick(0, 0.15, 0.3, 0.5);
  const troubles = new Set<Trouble>(TROUBLES.filter(() => random.next() < share));
  const has = (trouble: Trouble): boolean => troubles.has(trouble);
  const slot = (): number => random.integer(0, gateways - 1);
  const actions: Planned[] = [];
  const at = (action: Action, atMs = random.next() * MAIN_MS): void => void actions.push({ atMs, action });
  const some = (from: number, to: number, make: () => Action): void => {
    for (let count = random.integer(from, to); count > 0; count -= 1) at(make());
  };
  const record = (): string => random.pick(...RECORDS, RECORDS[0]);
  const target = (): Target => {
    const kind = random.pick('evaluation', 'evaluation', 'transcript', 'list');
    return kind === 'list' ? { kind, id: null } : { kind, id: record() };
  };
  const read = (of = target(), key = random.integer(0, KEYS.length - 1)): Action => ({
    do: 'read',
    slot: slot(),
    key,
    target: of,
  });

  some(20, 50, read);
  // Many who ask for the same at once, by several gateways, and an edit or a purge among them.
  for (let bursts = random.integer(2, 6); bursts > 0; bursts -= 1) {
    const [atMs, of, key] = [random.next() * MAIN_MS, target(), random.integer(0, KEYS.length - 1)];
    const withinMs = random.pick(2, 30, 150);
    for (let count = random.integer(3, 8); count > 0; count -= 1) at(read(of, key), atMs + random.next() * withinMs);
    if (of.id === null) continue;
    const [changeMs, purgeMs] = [atMs + random.next() * withinMs, atMs + random.next() * 2 * withinMs];
    if (random.next() < 0.5) at({ do: 'edit', id: of.id }, changeMs);
    if (random.next() < 0.3) at({ do: 'purge', slot: slot(), tag: `evaluation:${of.id}` }, purgeMs);
    at(read(of, key), purgeMs + random.pick(50, 300, 1200));
  }
  some(2, 7, () => ({ do: random.pick('edit', 'edit', 'edit', 'edit', 'move', 'move', 'delete'), id: record() }));
  some(0, 4, () => ({ do: 'purge', slot: slot(), tag: tagOf(random, record()) }));
  // A key ends while its requests are under way.
  for (let ends = random.integer(0, 2); ends > 0; ends -= 1) {
    const [atMs, key] = [random.next() * MAIN_MS, random.integer(0, KEYS.length - 1)];
    at({ do: 'end-key', slot: slot(), key }, atMs);
    for (let count = random.integer(0, 4); count > 0; count -= 1) {
      at(read(target(), key), Math.max(0, atMs + random.integer(-150, 1500)));
    }
  }
  some(0, 1, () => ({ do: 'times', slot: slot(), freshMs: random.pick(0, 500, 4000) }));
  if (random.next() < 0.15) at({ do: 'maintain', slot: slot(), forMs: random.integer(300, 1500) });
  if (random.next() < 0.2) at({ do: 'roll', slot: slot() });
  if (has('pauses')) some(1, 4, () => ({ do: 'pause', slot: slot(), forMs: random.pick(200, 1000, 2500, 4000) }));
  if (has('kills')) some(1, 2, () => ({ do: 'kill', slot: slot(), forMs: random.integer(50, 2000) }));
  if (has('clocks'))
    some(0, 2, () => ({ do: 'step-clock', slot: slot(), byMs: random.pick(-5000, -1000, 1000, 5000, 90_000) }));
  if (has('store')) {
    some(1, 3, () => ({ do: 'store', mode: random.pick('slow', 'failing'), forMs: random.integer(300, 2500) }));
  }
  const host = (): number => random.integer(0, hosts);
  if (has('late')) {
    some(1, 2, () => ({
      do: 'redis-late',
      host: host(),
      lateMs: random.pick(100, 300, 800),
      forMs: random.integer(200, 2000),
    }));
  }
  if (has('cut')) some(1, 2, () => ({ do: 'redis-cut', host: host(), slot: slot(), forMs: random.integer(300, 3000) }));
  if (has('down')) {
    some(1, 2, () => ({
      do: 'redis-down',
      host: host(),
      forMs: random.integer(50, 1500),
      lostMs: random.pick(0, 20, 300, 3000),
    }));
  }
  if (has('emptied')) at({ do: 'redis-emptied', host: host() });
  playScene(seed, gateways, (atMs, action) => at(action, atMs));
  return {
    seed,
    gateways,
    hasTwoRedis,
    aheadMs: Array.from({ length: gateways }, () => (has('clocks') ? random.integer(-1500, 1500) : 0)),
    refreshRate: seed % 2 === 0 ? 0 : 20,
    messageFaults: has('messages') ? random.pick(50, 200, 1000) : 0,
    actions: actions.toSorted((one, other) => one.atMs - other.atMs),
  };
}

/** Drawn from another source, so that a scene changes nothing else of the plan. */
function playScene(seed: number, gateways: number, at: (atMs: number, action: Action) => void): void {
  const random = new SeededRandom(seed ^ 0x5c_e4e);
  const inTurn = Array.from({ length: gateways }, (_, slot) => ({ slot, turn: random.next() }));
  const slots = inTurn.toSorted((one, other) => one.turn - other.turn).map(({ slot }) => slot);
  const [first = 0, second = 1, ...others] = slots;
  const [one, ...more] = Object.values(SCENES);
  if (one !== undefined && random.next() < SCENES_SHARE) {
    random.pick(one, ...more)({ random, slots: [first, second, ...others], at });
  }
  if (random.next() < ANNOUNCING_SHARE) announceChanges({ random, slots: [first, second, ...others], at });
}

function tagOf(random: SeededRandom, id: string): string {
  const all = ['all', 'class:evaluation', `workspace:${WORKSPACE_A}`] as const;
  return random.pick(`evaluation:${id}`, `evaluation:${id}`, ...all);
}
