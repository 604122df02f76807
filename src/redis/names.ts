/**
 * Every name in Redis, built here and nowhere else. All that one script touches has one hash tag (the part in braces), and
 * so one slot of a Cluster. Parts that come from outside are escaped, so that no two ids ever share a name.
 */

const PREFIX = 'evalgate:';

/** Braces would end a hash tag, a colon a part, and a percent sign is the escape itself. */
function escaped(part: string): string {
  return part.replaceAll(/[%:{}]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);
}

/** A name whose slot is that of the tag: `evalgate:{tag}:part:part`. Tag and parts are escaped. */
export function taggedKey(tag: string, ...parts: readonly string[]): string {
  return [`${PREFIX}{${escaped(tag)}}`, ...parts.map(escaped)].join(':');
}

/**
 * Quotas in one bucket share a slot, so that one script can decide on several. These tags' slots are a sixteenth of all
 * slots apart, so that nodes with equal parts of the slots have equal parts of the buckets.
 */
const QUOTA_TAGS = [748, 658, 385, 295, 308, 218, 865, 975, 925, 87, 248, 358, 933, 823, 608, 718] as const;
export const QUOTA_BUCKETS = QUOTA_TAGS.length;

/** Which bucket the quota is in: from 0 up to `QUOTA_BUCKETS`. The same for all releases over one Redis. */
export function quotaBucket(quotaId: string): number {
  let hash = 0x81_1c_9d_c5;
  for (let i = 0; i < quotaId.length; i += 1) hash = Math.imul(hash ^ quotaId.charCodeAt(i), 0x01_00_01_93);
  return (hash ^ (hash >>> 16)) & (QUOTA_BUCKETS - 1);
}

function quotaKey(quotaId: string): string {
  return `${PREFIX}{quota-${QUOTA_TAGS[quotaBucket(quotaId)]}}:${escaped(quotaId)}`;
}

/** A name in each bucket, in their order, to try out whether its node answers and what may be done there. */
export function trialKeys(id: string): readonly string[] {
  return QUOTA_TAGS.map((tag) => taggedKey(`quota-${tag}`, 'trial', id));
}

/** Times of a quota's admitted requests: a list, oldest first. */
export const quotaLogKey = (quotaId: string): string => `${quotaKey(quotaId)}:log`;

/** That a process's admissions of one outage were added to the log: set once, so that sending them again adds nothing. */
export const quotaMergeKey = (quotaId: string, mergeId: string): string =>
  `${quotaKey(quotaId)}:merged:${escaped(mergeId)}`;

/** The reports of the gateway processes about themselves: a hash, by the process's id. */
export const INSTANCES_KEY = taggedKey('members');

/** The same processes in a sorted set, scored by the time of their last heartbeat. */
export const HEARTBEATS_KEY = taggedKey('members', 'beats');

/** Processes that ended, or were cut off, without a goodbye: their ids with when that was noticed. */
export const VANISHED_KEY = taggedKey('members', 'vanished');

/** One slot for the key registry and the journal, so that a record, its indexes and the news of it change in one script. */
export const registryKey = (...parts: readonly string[]): string => taggedKey('keys', ...parts);

/** Who changed what: a list, newest first. */
export const auditKey = (): string => `${PREFIX}audit`;

export interface EntryNames {
  readonly entry: string;
  /** That there is none for a set of workspaces. */
  readonly negative: (workspaceSet: string) => string;
  /** Held by the process that asks the store for that audience. */
  readonly lease: (audience: string) => string;
  /** How its last call failed. */
  readonly failure: (audience: string) => string;
}

/** Names of cached answers. They hold which store the answers are of, so that two stores over one Redis never mix. */
export class CacheNames {
  readonly #store: string;

  /** `store`: letters and digits. */
  constructor(store: string) {
    this.#store = store;
  }

  /** The entry of one answer, which all readers share. */
  entry(cacheKey: string): string {
    return taggedKey(`cache-${this.#store}-${cacheKey}`);
  }

  /** Everything that belongs to one key, all in the slot of its entry. */
  of(cacheKey: string): EntryNames {
    const entry = this.entry(cacheKey);
    const beside = (part: string): string => `${entry}:${escaped(part)}`;
    return {
      entry,
      negative: (workspaceSet) => beside(`absent-${workspaceSet}`),
      lease: (audience) => beside(`lease-${audience}`),
      failure: (audience) => beside(`failure-${audience}`),
    };
  }

  /** With it begin the names of all entries, and of everything beside them. */
  get entryPrefix(): string {
    return `${PREFIX}{cache-${this.#store}-`;
  }

  /** Matches the names of all entries, and of nothing beside them (Redis's glob syntax). */
  get entryPattern(): string {
    return `${this.entryPrefix}*}`;
  }

  /** Where ends of flights are announced. Channels know no database numbers, so the number is part of the name. */
  flightsChannel(db: number): string {
    return channelName('cache', this.#store, String(db), 'flights');
  }
}

/** A process's report to the others about its what-if model. The processes in front of one store share a slot. */
export const whatIfReportKey = (store: string, instance: string): string => taggedKey(`what-if-${store}`, instance);

/** Which processes have handed their report over at their end: their ids, by the time of it. */
export const whatIfEndedKey = (store: string): string => taggedKey(`what-if-${store}`, 'ended');

/** Where a process gets the reads of keys that it follows. Instances have ids of their own in every database. */
export const whatIfChannel = (store: string, instance: string): string => channelName('what-if', store, instance);

/** The counts of one step of time: a hash, by process. The steps of one name share a slot. */
export const stepKey = (name: string, stepAtMs: number): string => taggedKey(`steps-${name}`, String(stepAtMs));

/** When all calls to the store that all processes sent would have gone, one by one at the rate that is allowed. */
export const callRateKey = (store: string): string => taggedKey(`store-${store}`, 'rate');

/** A channel for messages. Channels have no slot. */
export function channelName(...parts: readonly string[]): string {
  return [`${PREFIX}channel`, ...parts.map(escaped)].join(':');
}
