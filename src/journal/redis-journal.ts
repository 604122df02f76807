/**
 * The journal of processes over one Redis: a stream, and a hash of what all events have left (scripts.ts). Each process waits
 * for the next event in a blocked read on a connection of its own. A reply proves that nothing is missing up to the moment when
 * its command was sent; so the read is message, catch-up, heartbeat and proof in one.
 *
 * An event is in force in every process within milliseconds. How that can fail, and what bounds it:
 * - The blocked read gets no reply (its connection is lost, or delivers nothing), or the process itself was held up: after 900 ms
 *   without proof (`isProven`) nothing in memory is used before a look at Redis, on the connection for commands, has shown that
 *   nothing is missing (C8: while Redis answers, memory is used only with proof).
 * - Redis does not answer: nobody can append, and memory stays usable. Only a process that Redis alone cannot reach misses
 *   what others append, until it reaches Redis; then its first look comes before it trusts anything.
 * - The events after a process's position are cut off, because it was stopped for long: it reads what all have left, and drops
 *   its memory.
 * - Redis has lost events: it was emptied, has evicted or lost one of the two names, was restored from an old copy, or lost its
 *   last writes in a failover. Stream, hash and what a process knows then contradict each other, which each append and each
 *   look notices, a waiting process within 250 ms. The first to notice begins a new history, in which everything from before
 *   counts as purged. If all processes that knew the lost events have ended, nobody can notice.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Clock } from '../time/clock.ts';
import { oneAtATime } from '../time/single-flight.ts';
import type { Timers } from '../time/timers.ts';
import type { RedisLink } from '../redis/connection.ts';
import { afterChange } from '../redis/errors.ts';
import type { BlockingConnection } from '../redis/blocking-connection.ts';
import { refusalOf } from '../redis/refusal.ts';
import { type RedisScript, runScript, type ScriptCall } from '../redis/script.ts';
import { compareEnd, type Entry, follow, type ExactPosition, Proof } from './chain.ts';
import { changeSchema, entriesSchema, caughtUpSchema, readEvent, readSnapshot, registerOf } from './events.ts';
import {
  type Apply,
  type EventKind,
  type Journal,
  type JournalEvent,
  type Position,
  PROOF_HOLDS_MS,
  type Snapshot,
} from './journal.ts';
import { Listeners } from './listeners.ts';
import { APPEND, JOURNAL_KEYS, CATCH_UP, STATE_KEY, STREAM_KEY } from './scripts.ts';

/** How long one read waits for an event. */
const BLOCK_MS = 250;
/** Events in one reply. */
const BATCH = 1000;
/** How long a revocation waits for a replica. */
const CONFIRM_MS = 250;
/** Before the next try while the connection for the blocked read is not there. */
const RETRY_MS = 100;
const WORD_BYTES = 9;

export interface RedisJournalOptions {
  /** To the state Redis. It stays its owner's to close, after the journal. */
  readonly link: RedisLink;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Called when Redis has lost events that this process knows. */
  readonly onLost: () => void;
}

/** A field of the hash beside the stream, its value (empty for none) and the value that is replaced. */
export interface Replaced {
  readonly field: string;
  readonly value: string;
  readonly replaced: string;
}

export class RedisJournal implements Journal {
  readonly #options: RedisJournalOptions;
  readonly #tail: BlockingConnection;
  readonly #confirming: BlockingConnection;
  readonly #listeners = new Listeners();
  readonly #proof = new Proof();
  /** The registers as this process knows them: what an event that replaces one is worked out from. */
  readonly #registers = new Map<string, string>();
  readonly #stopLooking: () => void;
  // Until Redis was reached this process has a history of its own, which nobody else trusts.
  #position: ExactPosition = { history: `alone-${randomUUID()}`, sequence: 0, word: '' };
  #isJoined = false;
  #failure: unknown = null;
  #waitFailure: unknown = null;
  #isClosed = false;

  constructor(options: RedisJournalOptions) {
    this.#options = options;
    this.#tail = options.link.openBlocking('journal', BLOCK_MS);
    this.#confirming = options.link.openBlocking('replicas', CONFIRM_MS);
    // If it fails, the next read without proof looks again.
    this.#stopLooking = options.link.onUp(() => void this.catchUp().catch(() => undefined));
    void this.#follow();
  }

  get position(): Position {
    const { history, sequence } = this.#position;
    return { history, sequence };
  }

  get isJoined(): boolean {
    return this.#isJoined;
  }

  /** Why the last look at Redis failed; null if it did not. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Why Redis refused the last wait for an event; null if it did not. */
  get waitFailure(): unknown {
    return this.#waitFailure;
  }

  isProven(): boolean {
    return this.#nowMs() - this.#proof.atMs <= PROOF_HOLDS_MS;
  }

  prove(): Promise<void> | null {
    if (this.isProven() || !this.#options.link.mayAnswer()) return null;
    return this.#untilProven();
  }

  /** Never rejects. */
  async #untilProven(): Promise<void> {
    const { link } = this.#options;
    await link.retried();
    try {
      // An answer to what was asked before the process was held up proves nothing of now.
      while (!this.isProven() && link.isUp()) await this.catchUp();
    } catch {
      // If Redis does not answer after all, memory stays usable.
    }
  }

  on<K extends EventKind>(kind: K, apply: Apply<K>): () => void {
    return this.#listeners.on(kind, apply);
  }

  onSnapshot(listener: (snapshot: Snapshot) => void): () => void {
    return this.#listeners.onSnapshot(listener);
  }

  /** `also`: a field beside the journal that is replaced in the same step, or nothing is appended. */
  async append(event: JournalEvent, also: readonly Replaced[] = []): Promise<boolean> {
    const text = JSON.stringify(event);
    const register = registerOf(event);
    const own = register === null ? [] : [{ ...register, replaced: this.#registers.get(register.field) ?? '' }];
    const args = [...own, ...also].flatMap(({ field, value, replaced }) => [field, value, replaced]);
    const [isAppended] = await this.run(APPEND, text, { keys: [], args: [text, ...args] });
    return isAppended === 1;
  }

  /** The fields of the hash that events replace, as far as this process knows. */
  registers(): ReadonlyMap<string, string> {
    return this.#registers;
  }

  /**
   * Runs a script that may append that event. Resolves with what it returned beside its position, once everything up to there is
   * applied here. Rejects as `append` does.
   */
  async run(
    script: RedisScript,
    text: string,
    { keys, args }: ScriptCall,
    way: Pick<RedisLink, 'run'> = this.#options.link,
  ): Promise<readonly unknown[]> {
    const { asked, next } = this.#ask();
    const call = { keys: [...JOURNAL_KEYS, ...keys], args: [asked, ...args] };
    const { position, results } = changeSchema.parse(await runScript(way, script, call));
    const { history, word, sequence } = this.#position;
    const isNext = position.word === next && position.history === history && position.sequence === sequence + 1;
    // The word before it is the caller's: the script has compared them.
    if (isNext) this.#apply([{ sequence: position.sequence, word: next, after: word, text }]);
    else if (position.word !== word || position.history !== history) await afterChange(() => this.catchUp());
    return results;
  }

  /**
   * The same, for what a failover must not undo silently: waits for a replica to have it. `isConfirmed` is false if none says so
   * in time, and null if there is none to wait for: a single Redis without replicas. With Sentinels or in a Cluster another
   * server may take over at any time, also one that is not connected now.
   */
  async runConfirmed(
    ...[script, text, call]: [RedisScript, string, ScriptCall]
  ): Promise<{ readonly results: readonly unknown[]; readonly isConfirmed: boolean | null }> {
    const way = this.#confirming;
    const unknown = this.#options.link.kind === 'single' ? null : false;
    if (!way.isUp()) return { results: await this.run(script, text, call), isConfirmed: unknown };
    // `WAIT` is about the writes of its own connection.
    const results = await this.run(script, text, call, way);
    return { results, isConfirmed: await this.#isReplicated(way).catch(() => unknown) };
  }

  /** Whether a replica has all that was written on that connection; null for a single Redis without replicas. */
  async #isReplicated(way: BlockingConnection): Promise<boolean | null> {
    const clients = way.servers().map(({ client }) => client);
    // In a Cluster, the primary that has the journal: the others send elsewhere.
    const found = await way.run(() => Promise.allSettled(clients.map((client) => client.exists(STATE_KEY))));
    const client = clients[found.findIndex(({ status }) => status === 'fulfilled')];
    if (client === undefined) return false;
    const replicas = /^connected_slaves:(\d+)/m.exec(await way.run(() => client.info('replication')))?.[1];
    if (replicas === undefined || replicas === '0') return this.#options.link.kind === 'single' ? null : false;
    return (await way.run(() => client.wait(1, CONFIRM_MS)).catch(() => 0)) > 0;
  }

  /** One look at a time, so that no reply is adopted after a later one. */
  readonly catchUp = oneAtATime(async () => {
    try {
      await this.#readOn();
      this.#failure = null;
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  });

  /** Follows no more. */
  close(): void {
    this.#isClosed = true;
    this.#stopLooking();
    this.#tail.close();
    this.#confirming.close();
  }

  async #readOn(): Promise<void> {
    const sentAtMs = this.#nowMs();
    const { asked } = this.#ask();
    const reply = await runScript(this.#options.link, CATCH_UP, { keys: JOURNAL_KEYS, args: [asked] });
    const { position, because, entries, fields } = caughtUpSchema.parse(reply);
    if (because !== '') this.#restore(position, because, fields);
    // Meanwhile the position may have moved on, and some of these are known.
    else if (!this.#apply(entries)) throw new Error('the journal has changed during a look at it');
    this.#proof.note(sentAtMs);
  }

  /** Waits for the next events, for ever. */
  async #follow(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#followOnce();
        this.#waitFailure = null;
      } catch (error) {
        // A connection that is lost comes back; a refusal stays.
        this.#waitFailure = refusalOf(error, this.#options.link)?.kind === 'forbidden' ? error : null;
        // By looks alone a process follows late. The link finds out by them what Redis refuses, and reports it.
        if (this.#waitFailure !== null) await this.catchUp().catch(() => undefined);
        const pauseMs = this.#waitFailure === null ? RETRY_MS : BLOCK_MS;
        await new Promise<void>((resolve) => void this.#options.timers.after(pauseMs, resolve));
      }
    }
  }

  async #followOnce(): Promise<void> {
    if (!this.#isJoined) await this.catchUp();
    const after = `${this.#position.sequence}-0`;
    const sentAtMs = this.#nowMs();
    const reply = await this.#tail.run((client) =>
      client.xread('COUNT', BATCH, 'BLOCK', BLOCK_MS, 'STREAMS', STREAM_KEY, after),
    );
    const [stream] = reply ?? [];
    if (stream === undefined) return this.#compareEnd();
    const entries = entriesSchema.parse(stream[1]);
    if (!this.#apply(entries)) await this.catchUp();
    else if (entries.length < BATCH) this.#proof.note(sentAtMs);
  }

  /** No event came: either there was none, or the stream is not the one that this process knows. */
  async #compareEnd(): Promise<void> {
    const sentAtMs = this.#nowMs();
    const [[history = null, last = null], newest] = await this.#tail.run((client) =>
      Promise.all([client.hmget(STATE_KEY, 'history', 'last'), client.xrevrange(STREAM_KEY, '+', '-', 'COUNT', 1)]),
    );
    const [entry = null] = entriesSchema.parse(newest);
    const end = compareEnd(this.#position, { history, last, newest: entry });
    if (end === 'reached') this.#proof.note(sentAtMs);
    if (end === 'lost') await this.catchUp();
  }

  /** False if they do not follow the position. */
  #apply(entries: readonly Entry[]): boolean {
    for (const entry of entries) {
      const step = follow(this.#position, entry);
      if (step === 'broken') return false;
      if (step === 'known') continue;
      this.#position = { history: this.#position.history, sequence: entry.sequence, word: entry.word };
      const event = readEvent(entry.text);
      if (event === null) continue;
      const register = registerOf(event);
      if (register !== null) this.#registers.set(register.field, register.value);
      this.#listeners.apply(event, this.position);
    }
    return true;
  }

  #restore(position: ExactPosition, because: Snapshot['because'], fields: ReadonlyMap<string, string>): void {
    this.#position = position;
    this.#isJoined = true;
    this.#registers.clear();
    for (const [field, value] of fields) {
      if (field.startsWith('times:') || field === 'maintenance') this.#registers.set(field, value);
    }
    const { history, sequence } = position;
    this.#listeners.restore({ because, position: { history, sequence }, ...readSnapshot(fields) });
    if (because === 'lost') this.#options.onLost();
  }

  /** The position of this process, for a script, with the word of the event that it may append. */
  #ask(): { readonly asked: string; readonly next: string } {
    const next = randomBytes(WORD_BYTES).toString('base64url');
    const asked = JSON.stringify({ ...this.#position, isJoined: this.#isJoined, begin: randomUUID(), next });
    return { asked, next };
  }

  #nowMs(): number {
    return this.#options.clock.nowMicros() / 1000;
  }
}
