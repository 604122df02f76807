/**
 * The answers that a cache may give, whatever happens in whatever order. A history of actions is played against gateways
 * while a model keeps every state that each record ever had; each answer must show states that the reader could have been
 * shown.
 */
import { z } from 'zod';
import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Action, PurgeOf, Tenant, Which } from './cache-actions.ts';
import type { World } from './world.ts';
import type { Reply, TestGateway } from './gateway.ts';
import { anEvaluation } from './records.ts';
import { type Hold, sendError } from './store-server.ts';

/** A state of a record, from one action to another. */
interface State {
  readonly workspaceId: string | null;
  untilStep: number;
  untilMs: number;
}

interface Purge {
  readonly what: PurgeOf;
  readonly step: number;
}

interface Times {
  readonly freshMs: number;
  readonly staleMs: number;
  readonly errorMs: number;
}

const DEFAULT_TIMES: Readonly<Record<'evaluation' | 'list', Times>> = {
  evaluation: { freshMs: 300_000, staleMs: 3_600_000, errorMs: 86_400_000 },
  list: { freshMs: 30_000, staleMs: 300_000, errorMs: 3_600_000 },
};
const FRESH_MS: Readonly<Record<string, number>> = { '0s': 0, '10s': 10_000, '1h': 3_600_000 };
const NOT_FOUND_MS = 15_000;
const FAILURE_MS = 1000;
/** `Age` and the like are whole seconds. */
const ROUNDED_MS = 1000;
const OF_RECORDS = /\/evaluations/;
const UNLIMITED = 1_000_000_000;

const callSchema = z.looseObject({ id: z.string(), name: z.string() });
const oneSchema = z.object({ call: callSchema });
const pageSchema = z.looseObject({ calls: z.array(callSchema) });

interface Sent {
  readonly tenant: Tenant;
  readonly of: Which | 'list';
  readonly step: number;
  readonly ms: number;
  /** Nothing that it is answered was asked of the store before this, unless a tier had it. */
  readonly floorMs: number;
}

export class CacheModel {
  readonly faults: string[] = [];
  readonly #world: World;
  readonly #workspaceIds = [randomUUID(), randomUUID()] as const;
  readonly #ids = [`ev_${randomUUID()}`, `ev_${randomUUID()}`] as const;
  readonly #states: readonly [State[], State[]] = [[], []];
  readonly #byTitle = new Map<string, State>();
  readonly #titles = ['', ''];
  readonly #purges: Purge[] = [];
  readonly #pending = new Set<Promise<void>>();
  /** Each time in force, since which step. */
  readonly #times: { readonly class: 'evaluation' | 'list'; readonly freshMs: number; readonly step: number }[] = [];
  readonly #haveMoved = new Set<Which>();
  #keys: readonly string[] = [];
  #step = 0;
  #hold: Hold | null = null;
  #heldSinceMs: number | null = null;
  /** The last hold that was released. */
  #released = { sinceMs: 0, atMs: 0 };
  /** Ends the store's failing; null while it is well. */
  #recovery: (() => void) | null = null;
  #failedMs = Number.NEGATIVE_INFINITY;
  /** The same in real time. */
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(world: World) {
    this.#world = world;
  }

  async start(): Promise<void> {
    const { here } = this.#world;
    const [a, b] = this.#workspaceIds;
    const issue = (workspaceIds: readonly string[]) =>
      here.issueKey({ workspaceIds, perMinute: UNLIMITED, perHour: UNLIMITED });
    this.#keys = [await issue([a]), await issue([b]), await issue([a, b])];
    for (const of of [0, 1] as const) this.#put(of, this.#workspaceIds[of]);
  }

  async play(act: Action): Promise<void> {
    this.#step += 1;
    if (act.do === 'read') await this.#read(act);
    else if (act.do === 'change') this.#put(act.of, this.#current(act.of).workspaceId ?? this.#workspaceIds[0]);
    else if (act.do === 'move') this.#move(act.of);
    else if (act.do === 'delete') this.#put(act.of, null);
    else if (act.do === 'hold') this.#beginHold();
    else if (act.do === 'release') await this.#release();
    else if (act.do === 'send') this.#hold?.answers[act.place]?.send();
    else if (act.do === 'fail') this.#fail();
    else if (act.do === 'recover') this.#recover();
    else if (act.do === 'advance') await this.#advance(act.ms);
    else if (act.do === 'purge') await this.#purge(act);
    else if (act.do === 'times') {
      await this.#world.setTimes(act.class, { fresh: act.fresh });
      this.#times.push({ class: act.class, freshMs: FRESH_MS[act.fresh] ?? 0, step: this.#step });
    }
    this.#checkCallsAtOnce();
  }

  /**
   * C10: at once, a tenant causes one call for a record that it sees no copy of, and one to renew a copy: a purge or a move
   * may come between the two. A list is asked for once.
   */
  #checkCallsAtOnce(): void {
    const counts = new Map<string, number>();
    for (const { path, requestId } of this.#hold?.answers ?? []) {
      const name = `${path} for ${requestId}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    for (const [name, count] of counts) {
      const most = name.includes('?workspaceId=') ? 1 : 2;
      if (count > most) this.faults.push(`the store was asked ${count} times at once: ${name}`);
    }
  }

  /** Lets everything end, and checks that every gateway then shows what is so. */
  async finish(): Promise<void> {
    const { clock } = this.#world;
    this.#recover();
    await this.#release();
    await this.play({ do: 'purge', what: 'all', mode: 'hard', gateway: 0 });
    for (const each of this.#world.gateways) {
      for (const of of [0, 1] as const) {
        const { workspaceId } = this.#current(of);
        for (const tenant of [0, 1, 2] as const) {
          const isThere = workspaceId !== null && this.#owns(tenant, workspaceId);
          await this.#world.eventually(async () => {
            // A failure is remembered for a second.
            clock.advance(FAILURE_MS);
            const { status, text } = await this.#get(each, tenant, of);
            const isSo = isThere ? text.includes(`"${this.#titles[of]}"`) : status === 404;
            if (!isSo) throw new Error(`${of} is, in the end, for tenant ${tenant}: ${status} ${text}`);
          });
        }
      }
    }
    for (const each of new Set(this.#times.map((one) => one.class))) await this.#world.resetTimes(each);
  }

  /** Takes back what was done to the world. */
  close(): void {
    this.#hold?.release();
    this.#recover();
    for (const id of this.#ids) this.#world.store.evaluations.delete(id);
  }

  #owns(tenant: Tenant, workspaceId: string): boolean {
    return this.#workspacesOf(tenant).includes(workspaceId);
  }

  #current(of: Which): State {
    const state = this.#states[of].at(-1);
    if (state === undefined) throw new Error('The record has no state.');
    return state;
  }

  /** The record is so from now on; null for none. */
  #put(of: Which, workspaceId: string | null): void {
    const { store, clock } = this.#world;
    const before = this.#states[of].at(-1);
    if (before !== undefined) {
      before.untilStep = this.#step;
      before.untilMs = clock.nowMs();
    }
    const state: State = { workspaceId, untilStep: Number.POSITIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY };
    this.#states[of].push(state);
    const id = this.#ids[of];
    if (workspaceId === null) {
      store.evaluations.delete(id);
      return;
    }
    const title = `version ${this.#byTitle.size} of ${id}`;
    this.#byTitle.set(title, state);
    this.#titles[of] = title;
    store.put({ evaluations: [anEvaluation({ _id: id, workspaceId, title })] });
  }

  #move(of: Which): void {
    const [a, b] = this.#workspaceIds;
    this.#haveMoved.add(of);
    this.#put(of, this.#current(of).workspaceId === a ? b : a);
  }

  #fail(): void {
    this.#recovery ??= this.#world.store.override(OF_RECORDS, (_request, response) => {
      response.on('finish', () => {
        this.#failedMs = this.#world.clock.nowMs();
        this.#failedAt = performance.now();
      });
      sendError(response, 503, 'FAILURE');
    });
  }

  #recover(): void {
    this.#recovery?.();
    this.#recovery = null;
  }

  #beginHold(): void {
    if (this.#hold !== null) return;
    this.#hold = this.#world.store.hold(OF_RECORDS);
    this.#heldSinceMs = this.#world.clock.nowMs();
  }

  async #release(): Promise<void> {
    this.#hold?.release();
    this.#hold = null;
    await this.#untilQuiet();
    await Promise.all(this.#pending);
    if (this.#heldSinceMs !== null) this.#released = { sinceMs: this.#heldSinceMs, atMs: this.#world.clock.nowMs() };
    this.#heldSinceMs = null;
  }

  /** Since when a read of now may have been under way: one in the millisecond of a release counts as having joined. */
  #floorMs(): number {
    const nowMs = this.#world.clock.nowMs();
    return this.#heldSinceMs ?? (this.#released.atMs === nowMs ? this.#released.sinceMs : nowMs);
  }

  /** No gateway asks the store for any of these. */
  async #untilQuiet(records: readonly (Which | 'list')[] = [0, 1, 'list'], tenants: readonly Tenant[] = [0, 1, 2]) {
    for (const each of this.#world.gateways) {
      for (const of of records) {
        // A record is explained for nobody: then it shows whoever asks for it.
        const viewers = of === 'list' ? tenants.map((tenant) => this.#workspacesOf(tenant)) : [[]];
        for (const viewer of viewers) {
          await this.#world.eventually(async () => {
            const { flight } = await this.#world.explain(this.#pathOf(of), each, viewer);
            if (flight.since !== null || flight.leaseLeftMs !== null) throw new Error(`${of} is still asked for`);
          });
        }
      }
    }
  }

  #workspacesOf(tenant: Tenant): readonly string[] {
    return tenant === 2 ? this.#workspaceIds : [this.#workspaceIds[tenant]];
  }

  #pathOf(of: Which | 'list'): string {
    return of === 'list' ? '/v2/calls' : `/v2/calls/${this.#ids[of]}`;
  }

  /** Finishes held reads first: they belong to the time before. */
  async #advance(ms: number): Promise<void> {
    if (this.#hold === null) await this.#release();
    this.#world.clock.advance(ms);
  }

  async #purge({ what, mode, gateway: place }: Extract<Action, { do: 'purge' }>): Promise<void> {
    const world = this.#world;
    const tags: Readonly<Record<PurgeOf, string>> = {
      'first evaluation': `evaluation:${this.#ids[0]}`,
      'workspace A': `workspace:${this.#workspaceIds[0]}`,
      'workspace B': `workspace:${this.#workspaceIds[1]}`,
      all: 'all',
      'class:evaluation': 'class:evaluation',
      'class:list': 'class:list',
    };
    const at = world.gateways[place % world.gateways.length];
    await world.purge([tags[what]], { mode }, at);
    if (mode === 'hard') this.#purges.push({ what, step: this.#step });
    // The next fetch is in another millisecond than the purged one.
    if (this.#hold === null) world.clock.advance(1);
  }

  #get(at: TestGateway, tenant: Tenant, of: Which | 'list'): Promise<Reply> {
    const headers = { 'x-request-id': `tenant-${tenant}` };
    return at.get(this.#pathOf(of), { key: this.#keys[tenant] ?? '', headers });
  }

  /** Resolves when the reader has its answer, or waits for one that is held. */
  async #read(read: Extract<Action, { do: 'read' }>): Promise<void> {
    const at = this.#world.gateways[read.gateway % this.#world.gateways.length] ?? this.#world.here;
    const isQuiet = this.#hold === null;
    const isForetold = isQuiet && this.#world.kind === 'memory';
    const foretold = isForetold ? await this.#foretell(read, at) : null;
    const ms = this.#world.clock.nowMs();
    const sent: Sent = { tenant: read.tenant, of: read.of, step: this.#step, ms, floorMs: this.#floorMs() };
    const reading = this.#get(at, read.tenant, read.of).then((reply) => this.#check(sent, reply));
    const ended: Promise<void> = reading.finally(() => this.#pending.delete(ended));
    this.#pending.add(ended);
    if (isQuiet) await ended;
    else {
      while (this.#pending.has(ended) && !this.#isHeld(read)) await setImmediate();
      // One that joins what is held has been taken up by the time a request after it is answered.
      await Promise.race([ended, at.get('/v2/calls?page=0', { key: this.#keys[read.tenant] ?? '' })]);
    }
    await foretold?.();
  }

  /** Whether the store has an answer for such a read ready. */
  #isHeld({ tenant, of }: Extract<Action, { do: 'read' }>): boolean {
    return (this.#hold?.answers ?? []).some(({ path }) => {
      const { pathname, searchParams } = new URL(path, 'http://store.invalid');
      if (of !== 'list') return pathname.endsWith(this.#ids[of]);
      return searchParams.getAll('workspaceId').toSorted().join() === this.#workspacesOf(tenant).toSorted().join();
    });
  }

  /** The store calls that the gateway predicts for the next read; compared when that read is over. */
  async #foretell({ tenant, of }: Extract<Action, { do: 'read' }>, at: TestGateway): Promise<() => Promise<void>> {
    const { next, memory } = await this.#world.explain(this.#pathOf(of), at, this.#workspacesOf(tenant));
    const before = this.#world.store.calls();
    return async () => {
      await this.#untilQuiet([of], [tenant]);
      const calls = this.#world.store.calls() - before;
      // A renewal is made for all who may see the copy. If the record is theirs no more, the reader's own set asks for itself.
      const isRenewal = memory?.state === 'usable-on-error' && this.#workspacesOf(tenant).length > 1;
      const isInVain = isRenewal && of !== 'list' && this.#current(of).workspaceId !== memory.owner;
      const [least, most] = next.store === 'not-asked' ? [0, 0] : [1, isInVain ? 2 : 1];
      if (calls >= least && calls <= most) return;
      this.faults.push(`tenant ${tenant} read ${of} at step ${this.#step}: ${calls} calls after "${next.text}"`);
    };
  }

  #check(sent: Sent, reply: Reply): void {
    const fault = (what: string): void => {
      const story = `tenant ${sent.tenant} read ${sent.of} at step ${sent.step}`;
      this.faults.push(`${story}: ${what} (${reply.status}, ${String(reply.headers['cache-status'])})`);
    };
    if (reply.status === 500) {
      const nowMs = this.#world.clock.nowMs();
      const hasFailed = this.#recovery !== null || this.#failedMs >= sent.ms - FAILURE_MS;
      // Redis remembers a failure by its own clock; a gateway that reads it there remembers it by this one.
      const isRemembered = this.#world.kind === 'redis' && performance.now() - this.#failedAt < 3 * FAILURE_MS;
      if (isRemembered) this.#failedMs = nowMs;
      if (!hasFailed && !isRemembered) fault('failed while the store does not');
      return;
    }
    if (reply.status === 404 && sent.of !== 'list') {
      const fromMs = Math.min(sent.floorMs, sent.ms - NOT_FOUND_MS);
      if (!this.#wasAbsent(sent.of, sent, fromMs)) fault('is not there, and was always there');
      return;
    }
    if (reply.status !== 200) {
      fault('is answered what nothing asks for');
      return;
    }
    this.#checkAge(sent, reply, fault);
    const shown = sent.of === 'list' ? pageSchema.parse(reply.json).calls : [oneSchema.parse(reply.json).call];
    const fromMs = sent.ms - Number(reply.headers.age) * 1000 - ROUNDED_MS;
    for (const call of shown) this.#checkShown(sent, call, fromMs, fault);
    if (sent.of !== 'list') return;
    for (const of of [0, 1] as const) {
      const isShown = shown.some(({ id }) => id === this.#ids[of]);
      if (!isShown && !this.#wasAbsent(of, sent, fromMs)) fault(`the list lacks ${of}, which was always in it`);
    }
  }

  #checkShown(
    sent: Sent,
    { id, name: title }: z.output<typeof callSchema>,
    fromMs: number,
    fault: (what: string) => void,
  ): void {
    const state = this.#byTitle.get(title);
    const of = id === this.#ids[0] ? 0 : 1;
    if (state === undefined || state.workspaceId === null || !title.endsWith(id))
      return fault(`is shown what never was: ${title}`);
    if (!this.#owns(sent.tenant, state.workspaceId)) fault(`is shown the record of another workspace: ${title}`);
    if (state.untilMs < fromMs) fault(`is shown ${title}, which is older than its Age`);
    const purge = this.#lastPurge(sent, of, state.workspaceId);
    if (purge !== undefined && state.untilStep <= purge.step) {
      fault(`is shown ${title}, which was over at step ${state.untilStep}, after the purge at ${purge.step}`);
    }
  }

  /** Whether there was a time since then in which the record was none of the reader's, and no purge since. */
  #wasAbsent(of: Which, sent: Sent, fromMs: number): boolean {
    return this.#states[of].some(({ workspaceId, untilMs, untilStep }) => {
      if (workspaceId !== null && this.#owns(sent.tenant, workspaceId)) return false;
      // A record of another workspace is purged by that.
      return untilMs >= fromMs && untilStep > (this.#lastPurge(sent, of, workspaceId)?.step ?? -1);
    });
  }

  /** The last hard purge before the reader came that drops what it reads of the record; `workspaceId` is null for nothing. */
  #lastPurge(sent: Sent, of: Which, workspaceId: string | null): Purge | undefined {
    return this.#purges.findLast(({ what, step }) => {
      if (step >= sent.step) return false;
      if (what === 'all') return true;
      if (what === 'class:list' || what === 'class:evaluation') return (what === 'class:list') === (sent.of === 'list');
      if (what === 'first evaluation') return of === 0 && !(sent.of === 'list' && this.#haveMoved.has(of));
      const purged = this.#workspaceIds[what === 'workspace A' ? 0 : 1];
      return sent.of === 'list' ? this.#owns(sent.tenant, purged) : (workspaceId ?? purged) === purged;
    });
  }

  /** C1, C2: no copy is used for longer than its times allow. One from before a change (C11) is served only as on error. */
  #checkAge(sent: Sent, { headers }: Reply, fault: (what: string) => void): void {
    const status = String(headers['cache-status']);
    if (!status.startsWith('evalgate; hit')) return;
    const cacheClass = sent.of === 'list' ? 'list' : 'evaluation';
    const { freshMs: byDefault, staleMs, errorMs } = DEFAULT_TIMES[cacheClass];
    const set = this.#times.filter((each) => each.class === cacheClass);
    const before = set.findLast(({ step }) => step <= sent.step)?.freshMs ?? byDefault;
    const freshMs = Math.max(before, ...set.filter(({ step }) => step > sent.step).map((each) => each.freshMs));
    const beyondMs = status.endsWith('revalidate')
      ? staleMs
      : status.endsWith('error') || status.endsWith('changed')
        ? Math.max(staleMs, errorMs)
        : 0;
    const ageMs = Number(headers.age) * 1000;
    if (ageMs > freshMs + beyondMs) fault(`is served a copy of ${ageMs} ms`);
    if (beyondMs === 0 && Number(/ttl=(-?\d+)/.exec(status)?.[1]) < 0) fault('is served as fresh what is not');
  }
}
