/** The gateways of a simulated fleet, their store and Redis, and what clients and operators do with them. */
import type { Tag } from '../../src/cache/purge-log.ts';
import { parseTag } from '../../src/cache/purge-log.ts';
import { EVALUATION_KINDS } from '../../src/upstream/resources.ts';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { SeededRandom } from '../support/random.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { read } from './client.ts';
import { SimulatedGateway } from './gateway.ts';
import { Follower } from './follower.ts';
import {
  type AnnouncedVersion,
  type Change,
  History,
  type ReadEvent,
  type ReadResult,
  type Target,
} from './history.ts';
import { Network, type RedisHost } from './network.ts';
import { KEYS, type Plan } from './plan.ts';
import { RedisModel } from './redis/server.ts';
import { Schedule, SimulatedProcess } from './schedule.ts';
import { SimulatedStore } from './store.ts';
import { TIMES, UPSTREAM_TIMEOUT_MS } from './times.ts';

const { config: BASE } = loadConfig({
  env: { REDIS_URL: 'redis://state:6379', UPSTREAM_URL: 'http://store.invalid', UPSTREAM_TOKEN: 'none' },
});

/** A place in the fleet, whichever process has it. */
interface Slot {
  process: SimulatedProcess;
  /** Null until its process has begun. */
  gateway: SimulatedGateway | null;
  generation: number;
}

interface HeldKey {
  readonly name: string;
  readonly keyId: string;
  readonly token: string;
}

export class Fleet {
  readonly plan: Plan;
  readonly history = new History();
  readonly schedule = new Schedule();
  readonly random: SeededRandom;
  readonly hosts: ReadonlyMap<string, RedisHost>;
  readonly network: Network;
  readonly store: SimulatedStore;
  readonly followers: Follower[] = [];
  readonly #slots: Slot[] = [];
  /** By place in `KEYS`; a key that has ended may have a successor. */
  readonly #keys: HeldKey[] = [];
  /** By request id, the workspaces of its reader. */
  readonly #readers = new Map<string, readonly string[]>();
  readonly #config: Config;
  /** By the ids that they were given. */
  readonly #announcements = new Map<string, AnnouncedVersion>();
  #requests = 0;
  #hasMessageFaults: boolean;

  /** `onCommand` is called with what is sent to a Redis. */
  constructor(plan: Plan, onCommand?: (words: readonly string[]) => void) {
    const { schedule, history } = this;
    this.plan = plan;
    // Another source, so that the plan does not depend on what the code draws.
    this.random = new SeededRandom(plan.seed ^ 0x5e_ed);
    const names = plan.hasTwoRedis ? ['state', 'cache'] : ['state'];
    this.hosts = new Map(names.map((name) => [name, this.#makeRedis(onCommand)]));
    this.#hasMessageFaults = plan.messageFaults > 0;
    const fateOfMessage = () => this.#fateOfMessage();
    this.network = new Network({ schedule, random: this.random, hosts: this.hosts, fateOfMessage });
    this.store = new SimulatedStore(schedule, this.random, history);
    this.#config = {
      ...BASE,
      redis: { ...BASE.redis, cacheUrl: plan.hasTwoRedis ? 'redis://cache:6379' : null },
      changes: { ...BASE.changes, announced: true },
      cache: {
        ...BASE.cache,
        refreshRate: plan.refreshRate,
        memoryBytes: 10_000_000,
        classes: { ...BASE.cache.classes, ...TIMES },
      },
      upstream: { ...BASE.upstream, timeoutMs: UPSTREAM_TIMEOUT_MS },
    };
  }

  get keys(): readonly HeldKey[] {
    return this.#keys;
  }

  /** The process that has the place now. */
  processAt(slot: number): SimulatedProcess {
    return this.#at(slot).process;
  }

  start(place: number): void {
    const { schedule, history } = this;
    const generation = (this.#slots[place]?.generation ?? 0) + 1;
    const name = `g${place + 1}${generation === 1 ? '' : `.${generation}`}`;
    const process = new SimulatedProcess(name, schedule.nowMs, this.plan.aheadMs[place] ?? 0);
    const slot: Slot = { process, gateway: null, generation };
    this.#slots[place] = slot;
    history.starts.set(name, schedule.nowMs);
    history.note(schedule.nowMs, name, 'starts');
    const fetch = this.store.fetchOf(process, (requestId) => this.#readers.get(requestId) ?? []);
    schedule.after(0, process, () => {
      slot.gateway = new SimulatedGateway({ schedule, process, config: this.#config, fetch });
    });
  }

  kill(place: number): void {
    const { process } = this.#at(place);
    if (process.state === 'killed') return;
    process.state = 'killed';
    this.network.closeOf(process);
    this.history.kills.set(process.name, this.schedule.nowMs);
    this.history.note(this.schedule.nowMs, process.name, 'is killed');
  }

  /** No message is lost, late or doubled any more. */
  endMessageFaults(): void {
    this.#hasMessageFaults = false;
  }

  /** `eventAtMs`: the time of the event of the feed that it is read for. */
  read(place: number, keyPlace: number, target: Target, eventAtMs: number | null = null): void {
    const key = this.#keys[keyPlace];
    if (key === undefined) return;
    this.#requests += 1;
    const requestId = `request-${this.#requests}`;
    this.as(place, async (gateway, nowMs) => {
      const workspaces = KEYS[keyPlace]?.workspaces ?? [];
      this.#readers.set(requestId, workspaces);
      const about = { process: gateway.process.name, key: key.name, target, startedMs: nowMs() };
      const event: ReadEvent = {
        ...about,
        ownWorkspaces: workspaces,
        workspaces,
        eventAtMs,
        admittedMs: null,
        endedMs: null,
        result: null,
      };
      this.history.reads.push(event);
      const what = `${target.id ?? 'the list'}${target.kind === 'transcript' ? "'s transcript" : ''}`;
      this.history.note(nowMs(), event.process, `${requestId} of ${key.name} asks for ${what}`);
      await read(gateway, { token: key.token, requestId, nowMs }, event);
      this.history.note(nowMs(), event.process, `${requestId} gets ${textOf(event.result)}`);
    });
  }

  /** The store announces the record as it is now; a repeated announcement has the same id. */
  announce(place: number, id: string, announcementId: string | null): void {
    this.as(place, async ({ changes, process }, nowMs) => {
      const { history } = this;
      const state = history.current(id);
      if (state === undefined || state.workspace === null) return;
      const { version, workspace } = state;
      const known = announcementId === null ? undefined : this.#announcements.get(announcementId);
      const announced = known ?? { id, version, startedMs: nowMs(), ackMs: null };
      if (known === undefined) history.announced.push(announced);
      if (announcementId !== null) this.#announcements.set(announcementId, announced);
      history.note(nowMs(), process.name, `hears that ${id} is #${announced.version}`);
      const change = { tag: `evaluation:${id}` as const, workspace, kinds: [...EVALUATION_KINDS], etags: {} };
      const about = { isCreated: false, isDeleted: false, previousWorkspace: null };
      await changes.announcements.announce({ mode: 'soft', changes: [{ ...change, ...about }] }, announcementId);
      announced.ackMs ??= nowMs();
      history.note(nowMs(), process.name, `has announced ${id}#${announced.version}`);
    });
  }

  follow(): void {
    const follower = new Follower(this);
    this.followers.push(follower);
    follower.begin();
  }

  purge(place: number, text: string): void {
    const tag: Tag | null = parseTag(text);
    if (tag === null) throw new Error(`${text} is no tag`);
    this.#operate(place, { kind: 'purge', tag }, (gateway) => gateway.purge([tag]));
  }

  setFreshTime(place: number, freshMs: number): void {
    this.#operate(place, { kind: 'times', class: 'evaluation', freshMs }, async ({ cache }) => {
      await cache.ttlControl.set('evaluation', { freshMs }, null);
    });
  }

  maintain(place: number, forMs: number): void {
    const untilMs = this.schedule.nowMs + forMs;
    this.#operate(place, { kind: 'maintenance', untilMs }, async ({ maintenance, process }) => {
      await maintenance.begin(Math.ceil(untilMs + process.aheadMs), 'somebody');
    });
  }

  makeKey(place: number, keyPlace: number): void {
    const given = KEYS[keyPlace];
    if (given === undefined) return;
    const name = `k${keyPlace + 1}${this.#keys[keyPlace] === undefined ? '' : `-${this.#requests}`}`;
    this.as(place, async ({ keys, process }, nowMs) => {
      const { key, token } = await keys.registry.create({
        name,
        workspaceIds: [...given.workspaces],
        scopes: ['calls.read'],
        expiresAtMs: null,
        limits: { perMinute: given.perMinute, perHour: null },
      });
      this.#keys[keyPlace] = { name, keyId: key.keyId, token };
      this.history.note(nowMs(), process.name, `has made the key ${name}`);
    });
  }

  /** Revokes a key, or takes a workspace from one that has two; another key takes its place then. */
  endKey(place: number, keyPlace: number): void {
    const key = this.#keys[keyPlace];
    const [, lost] = KEYS[keyPlace]?.workspaces ?? [];
    if (key === undefined) return;
    const edit = lost === undefined ? { status: 'revoked' as const } : { workspaceIds: [WORKSPACE_A] };
    const what =
      lost === undefined
        ? ({ kind: 'revoke', key: key.name } as const)
        : ({ kind: 'workspaces', key: key.name, lost: WORKSPACE_B } as const);
    this.#operate(place, what, async ({ keys }) => {
      await keys.registry.edit(key.keyId, edit);
    });
    this.schedule.after(SUCCESSOR_AFTER_MS, null, () => this.makeKey(place, keyPlace));
  }

  /** An operator's change: acknowledged once `make` resolves. */
  #operate(place: number, what: Change['what'], make: (gateway: SimulatedGateway) => Promise<void>): void {
    this.as(place, async (gateway, nowMs) => {
      const { name } = gateway.process;
      const change: Change = { process: name, what, startedMs: nowMs(), ackMs: null };
      this.history.changes.push(change);
      const { kind, ...about } = what;
      const text = `${kind} ${Object.values(about).join(' ')}`;
      this.history.note(nowMs(), name, `is asked to: ${text}`);
      await make(gateway);
      change.ackMs = nowMs();
      this.history.note(nowMs(), name, `has done: ${text}`);
    });
  }

  /** Runs as code of the process that has the place then; one that is not there, or is paused, does it later or never. */
  as(place: number, run: (gateway: SimulatedGateway, nowMs: () => number) => Promise<void>): void {
    const slot = this.#at(place);
    const { process } = slot;
    const nowMs = (): number => this.schedule.nowMs;
    this.schedule.after(0, process, () => {
      if (slot.gateway === null) return;
      run(slot.gateway, nowMs).catch((error: unknown) => {
        const text = error instanceof Error ? error.message : String(error);
        this.history.note(nowMs(), process.name, `fails: ${text}`);
      });
    });
  }

  #at(place: number): Slot {
    const slot = this.#slots[place];
    if (slot === undefined) throw new Error(`the fleet has no place ${place}`);
    return slot;
  }

  #makeRedis(onCommand: ((words: readonly string[]) => void) | undefined): RedisHost {
    const { schedule } = this;
    const timers = { after: (delayMs: number, run: () => void) => schedule.after(delayMs, null, run) };
    const model = new RedisModel({ nowMicros: () => Math.floor(1000 * schedule.nowMs), timers, onCommand });
    return { model, isUp: true, lateMs: 0 };
  }

  #fateOfMessage(): { readonly copies: number; readonly lateMs: number } {
    if (!this.#hasMessageFaults || 1000 * this.random.next() >= this.plan.messageFaults)
      return { copies: 1, lateMs: 0 };
    return { copies: this.random.pick(0, 0, 1, 2), lateMs: this.random.integer(0, 400) };
  }
}

/** A consumer whose key has ended gets another one after a while. */
const SUCCESSOR_AFTER_MS = 1500;

function textOf(result: ReadResult | null): string {
  if (result === null) return 'no answer';
  if (result.kind === 'limited') return 'the refusal that its limit is used up';
  if (result.kind === 'absent') return `nothing: there is no such record (${result.outcome})`;
  if (result.kind !== 'shown') return `${result.kind}: ${result.reason}`;
  const shown = result.shown.map(({ id, version }) => `${id}#${version}`);
  return `${shown.length === 0 ? 'an empty list' : shown.join(', ')} (${result.outcome})`;
}
