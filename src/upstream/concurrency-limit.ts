/**
 * How many calls to the store may be under way: found by how the store bears them, between 1 and a ceiling. It begins at 2 and
 * doubles every two calls' time, from 8 on by halves, until calls become slower; from then on:
 * - It grows by so many calls a second, faster the longer nothing stands against it, but only while all of it is in use, or
 *   calls wait: an idle gateway forgets nothing, and proves nothing.
 * - It shrinks by a share of itself, larger the slower calls are than the best of late (best-latency.ts).
 * - Much slower calls, or 429, 503 and timeouts, lower it at once.
 *
 * Several processes share a store without a message: each sees the same slowness, all grow by the same and shrink by the same
 * share, so the largest shrinks most, until all have the same.
 *
 * The best latency can only be seen while the store has little to do, and a single process cannot bring that about. So all
 * processes that use all of their limit *spare* the store at the same moments, by their wall clocks: for some two calls' time
 * they let only a quarter through, and measure. A store that is slow whatever is asked of it is found out by that, and a
 * process that is new learns with the others what the store can do. Clocks that disagree by more than a call takes spoil the
 * measurement: it shows a store that is busier than it could be, and the limit is larger than it should be.
 *
 * Pure: the clock is handed in, and there is no timer. Decisions are made only when a call begins or ends.
 */
import type { Clock } from '../time/clock.ts';
import { BestLatency, type TimedCall } from './best-latency.ts';
import {
  type BegunCall,
  isHalfWhole,
  isOverload,
  isWhole,
  newTiming,
  type Round,
  type SentCall,
  timesOf,
  type Timing,
  touchesSeveral,
} from './call-round.ts';

export interface CallEnd {
  /**
   * As far as it says something of the store's load:
   * - `answered`: with status and headers, whatever they say
   * - `overload`: with 429 or 503
   * - `timeout`: with nothing in time
   * - `none`: it was not sent, or the connection failed
   */
  readonly sign: 'answered' | 'overload' | 'timeout' | 'none';
  /** From sending it to its status and headers; null if none came. */
  readonly latencyMs: number | null;
}

export interface LimitStatus {
  readonly limit: number;
  /** Whether the store itself is the reason that it is not larger. */
  readonly isFound: boolean;
}

/** The store is being spared. */
interface Spared extends Timing {
  readonly limit: number;
  /** Calls that begin from then on are timed, if no more than `limit` are under way: those before have ended everywhere. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** Whether all that use all of their limit spare it now, or nothing else helps: else it may be busy with the others. */
  readonly isJoint: boolean;
}

/** Low, because several processes may begin at once. */
const FIRST_LIMIT = 2;
/** For so long a new process waits for a first answer before it sends more calls. */
export const FIRST_ANSWER_MS = 1000;
/** Up to that limit the calls of a new process show what is normal. */
const FIRST_LEARNED_LIMIT = 4;
/** From then on a new process grows by halves: a store is asked for at most half as much again as it bears. */
const DOUBLED_UP_TO = 8;
const LEAST_CALLS = 8;
/** A difference of fewer standard deviations may be chance; more are needed to end the doubling, which is decided once. */
const CHANCE = 1;
const CHANCE_AT_FIRST = 2;
/** Slowness up to that, a tenth, is borne: the store is in full use. All of them are logarithms. */
const BORNE = Math.log(1.1);
/** At that it is lowered at once. */
const MUCH = Math.log(1.6);
/** Calls are slow if so many rounds in a row are: all that a busy machine delays for a moment is no sign. */
const LASTING_ROUNDS = 3;
/** But once is enough for a round that is four times slower, and takes longer than such a delay. */
const GLARING = Math.log(4);
const GLARING_MS = 500;
/** Shrinks by that share a second, for each unit of slowness beyond what is borne. */
const SHRINK_PER_SECOND = 1;
/** Grows by so many calls a second, and by so many more after each second that nothing stood against it. */
const GROW_PER_SECOND = 0.25;
const GROW_FASTER = 0.1;
/** For so long it is not faster after it was lowered twice at the same height. */
const GROW_GENTLY_MS = 10_000;
/** Nearer than that, as a logarithm, two heights are the same. */
const SAME_HEIGHT = 0.25;
const LOWERED_MOST = 0.5;
/** By how much signs lower it, and slowness where it was lowered before. */
const LOWERED = 0.8;
/** Once it is lower by that share and calls are hardly faster, lowering does not help: it waits for a measurement. */
const LOWERED_IN_VAIN = 0.7;
const HARDLY_FASTER = 0.8;
/** The store is spared at such moments, by the wall clock, if there is reason to; else at every third, sixth or twelfth. */
const MOMENT_MS = 5000;
const USUAL_MOMENTS = 3;
const YOUNG_FOR_MS = USUAL_MOMENTS * MOMENT_MS;
const JOINT_MOMENTS = 6;
const RAREST_MOMENTS = 12;
/** Sparing takes some two calls' time, and may not cost more than one in so many. */
const SPARE_EVERY_CALLS = 75;
const URGENT_EVERY_CALLS = 15;
const SPARED_SHARE = 1 / 4;
const SPARED_CALLS_AT_MOST = 6;
/** How long it stays known that the store itself was the reason. */
const FOUND_FOR_MS = 300_000;

export class ConcurrencyLimit {
  readonly #max: number;
  readonly #clock: Clock;
  readonly #best = new BestLatency();
  /** Not whole, so that it can grow slowly. */
  #value: number;
  /** Grows fast, by doubling and by halves, until something stands against it. */
  #isNew = true;
  /** Whether it does not grow now: calls may be slower, but that is not sure. */
  #isHeld = false;
  /** Whether any call has been answered. */
  #isAnswered = false;
  #inFlight = 0;
  #round: Round;
  #wasFull = false;
  readonly #openedAtMs: number;
  #grownAtMs: number;
  /** For how long nothing has stood against it. */
  #growingMs = 0;
  #loweredFrom = Number.POSITIVE_INFINITY;
  /** How slow calls were in each of the last rounds. */
  #slow: readonly number[] = [];
  /** Where it was, and how slow calls were, when they began to be slow; null while they are not. */
  #slowSince: { readonly value: number; readonly slowness: number } | null = null;
  #isInVain = false;
  #foundAtMs = Number.NEGATIVE_INFINITY;
  #spared: Spared | null = null;
  /** Not null while the store is no longer spared, and the slowest of the calls that were timed then have not ended. */
  #measuring: Spared | null = null;
  #sparedAtMs = Number.NEGATIVE_INFINITY;
  /** Counted from the beginning of wall-clock time. */
  #moment: number;

  /** The limit is never above `max`. */
  constructor(max: number, clock: Clock) {
    this.#max = max;
    this.#value = Math.min(max, FIRST_LIMIT);
    this.#clock = clock;
    this.#openedAtMs = this.#nowMs();
    this.#grownAtMs = this.#openedAtMs;
    this.#moment = Math.floor(clock.nowMs() / MOMENT_MS);
    this.#round = this.#newRound(new Set());
  }

  /** How many calls may be under way now: less than the limit for a moment, while the store is spared. */
  get allowed(): number {
    return this.#spared?.limit ?? this.#limit;
  }

  /** Whether it is low for want of calls, and not because the store has shown that it bears no more. */
  get isUnproven(): boolean {
    return this.#limit < this.#max && !this.status().isFound;
  }

  status(): LimitStatus {
    const isFound = this.#limit < this.#max && this.#nowMs() - this.#foundAtMs < FOUND_FOR_MS;
    return { limit: this.#limit, isFound };
  }

  /** A call is sent. Each one has to be ended. */
  begin(sent: SentCall): BegunCall {
    const atMs = this.#nowMs();
    this.#inFlight += 1;
    this.#round.isFull ||= this.#inFlight >= this.allowed || sent.othersWait;
    this.#round.most = Math.max(this.#round.most, this.#inFlight);
    this.#endSparing(atMs);
    this.#beginSparing(atMs);
    const timing = this.#timingAt(atMs);
    const call = { ...sent, atMs, round: this.#round, timing };
    if (timing !== null) {
      timing.begun += 1;
      timing.open.add(call);
    }
    return call;
  }

  /**
   * Returns whether the limit answers for a 429 or 503: it is lower because of it, or will be. Then it says nothing more about
   * the store.
   */
  end(call: BegunCall, { sign, latencyMs }: CallEnd): boolean {
    const nowMs = this.#nowMs();
    const { round, timing, keyId } = call;
    this.#inFlight -= 1;
    timing?.open.delete(call);
    if (sign === 'answered' && latencyMs !== null) {
      this.#isAnswered = true;
      timing?.timed.push({ ...call, latencyMs });
    }
    this.#endSparing(nowMs);
    // It was sent under another limit.
    if (round !== this.#round) return sign === 'overload' && this.#limit > 1;
    round.ended.set(keyId, (round.ended.get(keyId) ?? 0) + 1);
    if (sign === 'overload' || sign === 'timeout') round.signs.push(call);
    const isAnswered = sign === 'overload' && touchesSeveral(round) && this.#limit > 1;
    if (isOverload(round)) this.#lower(LOWERED, nowMs);
    else if (this.#isWhole(round, nowMs)) this.#judge(this.#isNew ? round.timed : timesOf(round, nowMs), nowMs);
    return isAnswered;
  }

  /**
   * A call has had no answer for a second (`FIRST_ANSWER_MS`). If none of a new process has had one, the limit is doubled, so
   * that the first calls do not hold back all others if they hang.
   */
  noAnswerYet({ round }: BegunCall): void {
    if (this.isUnanswered && round === this.#round) this.#set(this.#value * 2, this.#nowMs());
  }

  /** Whether no call has been answered, and nothing stands against more. */
  get isUnanswered(): boolean {
    return this.#isNew && !this.#isAnswered;
  }

  /** Where a call that begins now is timed; null if it is not. */
  #timingAt(nowMs: number): Timing | null {
    const spared = this.#spared;
    if (spared !== null && (nowMs < spared.fromMs || this.#inFlight > spared.limit)) return null;
    const timing = spared ?? this.#round;
    return timing.begun < timing.wanted ? timing : null;
  }

  get #limit(): number {
    return Math.floor(this.#value);
  }

  #judge(timed: readonly TimedCall[], nowMs: number): void {
    this.#wasFull = this.#round.isFull;
    if (timed.length === 0) return this.#stay(nowMs);
    const { mean, error } = this.#best.slownessOf(timed, nowMs);
    const slowness = mean - (this.#isNew ? CHANCE_AT_FIRST : CHANCE) * error;
    this.#isHeld = this.#isNew && mean - CHANCE * error > BORNE;
    // The first calls may also be slow by themselves: connections are made for them.
    const isFaster = this.#limit <= FIRST_LEARNED_LIMIT ? !this.#isHeld : mean < 0;
    if (this.#isNew && !this.#best.isMeasured && isFaster) this.#best.learnFirst(timed, nowMs);
    else this.#best.improve(timed, nowMs);
    this.#slow = [...this.#slow, slowness].slice(-LASTING_ROUNDS);
    const isGlaring = slowness > GLARING && this.#best.typicalMs > GLARING_MS;
    const isLasting = this.#slow.length === LASTING_ROUNDS;
    const lasting = isGlaring ? slowness : isLasting ? Math.min(...this.#slow) : 0;
    const excess = Math.max(0, lasting - BORNE);
    if (excess === 0) this.#slowSince = null;
    else {
      this.#foundAtMs = nowMs;
      this.#slowSince ??= { value: this.#value, slowness: lasting };
      const { value, slowness: before } = this.#slowSince;
      this.#isInVain = this.#value <= LOWERED_IN_VAIN * value && lasting > HARDLY_FASTER * before;
      if (this.#isInVain) return this.#stay(nowMs);
      if (lasting > MUCH) return this.#lower(Math.exp(-lasting), nowMs);
    }
    const seconds = (nowMs - this.#grownAtMs) / 1000;
    this.#isNew &&= excess === 0;
    const mayGrow = this.#round.isFull && !this.#isHeld && slowness <= BORNE;
    if (excess > 0) this.#growingMs = Math.min(this.#growingMs, this.#growingMs / 2);
    else if (mayGrow) this.#growingMs += 1000 * seconds;
    const perSecond = GROW_PER_SECOND + GROW_FASTER * Math.max(0, this.#growingMs / 1000);
    const gained = this.#isNew ? this.#firstStep() : Math.min(perSecond * seconds, Math.max(1, this.#value / 2));
    const lost = this.#value * (1 - Math.exp(-SHRINK_PER_SECOND * excess * seconds));
    this.#set(this.#value + (mayGrow ? gained : 0) - lost, nowMs);
  }

  #firstStep(): number {
    return this.#value < DOUBLED_UP_TO ? this.#value : this.#value / 2;
  }

  /** Lowers it to that share of what was used of it. */
  #lower(share: number, nowMs: number): void {
    const used = Math.max(1, Math.min(this.#value, this.#round.most));
    const isKnown = Math.abs(Math.log(used / this.#loweredFrom)) < SAME_HEIGHT;
    this.#isNew = false;
    this.#foundAtMs = nowMs;
    this.#loweredFrom = used;
    this.#slow = [];
    this.#growingMs = isKnown ? -GROW_GENTLY_MS : 0;
    this.#set(used * Math.max(isKnown ? LOWERED : LOWERED_MOST, Math.min(share, 1)), nowMs);
  }

  #stay(nowMs: number): void {
    this.#set(this.#value, nowMs);
  }

  #set(value: number, nowMs: number): void {
    this.#value = Math.max(1, Math.min(this.#max, value));
    this.#grownAtMs = nowMs;
    this.#round = this.#newRound();
  }

  #newRound(keysBefore: Round['keysBefore'] = this.#keysOfLate()): Round {
    const wanted = this.#isNew ? this.#limit : Math.max(LEAST_CALLS, this.#limit);
    const counts = { ended: new Map(), signs: [], most: this.#inFlight, isFull: false };
    return { ...newTiming(wanted), keysBefore, ...counts };
  }

  #keysOfLate(): Round['keysBefore'] {
    const { ended, keysBefore } = this.#round;
    return ended.size > 0 ? new Set(ended.keys()) : keysBefore;
  }

  #beginSparing(nowMs: number): void {
    const wallMs = this.#clock.nowMs();
    const moment = Math.floor(wallMs / MOMENT_MS);
    if (moment === this.#moment) return;
    this.#moment = moment;
    const isUsed = this.#round.isFull || this.#wasFull;
    if (
      this.#spared !== null ||
      this.#measuring !== null ||
      (this.#isNew && !this.#isHeld) ||
      !isUsed ||
      !this.#isTimeToSpare(moment, nowMs)
    )
      return;
    const { typicalMs } = this.#best;
    const beganMs = nowMs - (wallMs - moment * MOMENT_MS);
    const limit = Math.max(1, Math.floor(this.#value * SPARED_SHARE));
    this.#spared = {
      ...newTiming(Math.max(2, limit)),
      limit,
      fromMs: beganMs + typicalMs,
      untilMs: beganMs + SPARED_CALLS_AT_MOST * typicalMs,
      isJoint: moment % JOINT_MOMENTS === 0 || this.#isInVain,
    };
    this.#sparedAtMs = nowMs;
    this.#isInVain = false;
    this.#slowSince = null;
    this.#slow = [];
    this.#round = this.#newRound();
  }

  #isTimeToSpare(moment: number, nowMs: number): boolean {
    const { typicalMs, isMeasured } = this.#best;
    if (!isMeasured) return true;
    // Each of these numbers divides the next, so that those that find the store slower still meet those that do not.
    let every = USUAL_MOMENTS;
    while (every < RAREST_MOMENTS && every * MOMENT_MS < SPARE_EVERY_CALLS * typicalMs) every *= 2;
    if (moment % every === 0) return true;
    return this.#isInVain && nowMs - this.#sparedAtMs > URGENT_EVERY_CALLS * typicalMs;
  }

  #endSparing(nowMs: number): void {
    const spared = this.#spared;
    if (spared !== null && (isHalfWhole(spared) || nowMs >= spared.untilMs)) {
      this.#spared = null;
      this.#measuring = spared;
      this.#stay(nowMs);
    }
    const measuring = this.#measuring;
    if (measuring === null || !this.#isWhole(measuring, nowMs)) return;
    this.#measuring = null;
    const timed = timesOf(measuring, nowMs);
    if (!measuring.isJoint) return this.#best.improve(timed, nowMs);
    const isYoung = nowMs - this.#openedAtMs < YOUNG_FOR_MS;
    // The few calls that had shown what is normal were fast by chance, and the limit is low because of them.
    if (this.#best.measure(timed, nowMs) > BORNE && isYoung) this.#isNew = true;
  }

  #isWhole(timing: Timing, nowMs: number): boolean {
    return isWhole(timing, { isNew: this.#isNew, typicalMs: this.#best.typicalMs, nowMs });
  }

  /** A clock that is never set back. */
  #nowMs(): number {
    return this.#clock.nowMicros() / 1000;
  }
}
