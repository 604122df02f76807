/**
 * Every name in Redis, built here and nowhere else. All that one script touches has one hash tag (the part in braces), and
 * so one slot of a Cluster. Parts that come from outside are escaped, so that no two ids ever share a name.
 */
import type { RedisAddress } from './address.ts';

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

/** Set once a process's admissions of one outage were added to the log, so that sending them again adds nothing. */
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

/**
 * The feed of changes, in the same slot: a hash of how far it is, a stream per workspace, and the announcements that are known
 * by their id.
 */
export const FEED_KEY = registryKey('feed');
export const feedOfKey = (workspace: string): string => registryKey('feed', workspace);
export const announcementKey = (id: string): string => registryKey('announced', id);

/** Who changed what: a list, newest first. */
export const auditKey = (): string => `${PREFIX}audit`;

/** All that there is of one key, in one slot. A set is named by the workspaces in it. */
export interface CacheKeyNames {
  /** The copy of that owner: a workspace or, for a list, a set of them. */
  readonly copy: (owner: string) => string;
  /** The negative entry of a set of workspaces: there is no such record for it. */
  readonly negative: (set: string) => string;
  /** By owner, whether there is a copy, or when its copies ended. */
  readonly owners: string;
  /** By workspace, what the last answer has shown of an evaluation. */
  readonly seen: string;
  /** Held by the process that asks the store for that set. */
  readonly lease: (set: string) => string;
  /** How its last call failed. */
  readonly failure: (set: string) => string;
}

const COPY = '}:copy-';
const ABSENT = '}:absent-';
const SEEN = '}:seen';

/** Names of cached answers. They hold which store the answers are of, so that two stores over one Redis never mix. */
export class CacheNames {
  readonly #store: string;

  /** `store`: letters and digits. */
  constructor(store: string) {
    this.#store = store;
  }

  of(cacheKey: string): CacheKeyNames {
    const tag = taggedKey(`cache-${this.#store}-${cacheKey}`);
    const beside = (part: string): string => `${tag}:${escaped(part)}`;
    return {
      copy: (owner) => beside(`copy-${owner}`),
      negative: (set) => beside(`absent-${set}`),
      owners: `${tag}:owners`,
      seen: `${tag}:seen`,
      lease: (set) => beside(`lease-${set}`),
      failure: (set) => beside(`failure-${set}`),
    };
  }

  /** The owner in the name of a copy, and the name of its key's owners; null for any other name. */
  static copyIn(name: string): { readonly owner: string; readonly owners: string } | null {
    const at = name.indexOf(COPY);
    return at < 0 ? null : { owner: name.slice(at + COPY.length), owners: `${name.slice(0, at)}}:owners` };
  }

  /** Matches the names of all that is cached, of whichever store (Redis's glob syntax). */
  static readonly ALL = `${PREFIX}{cache-*`;

  /** The store in a name that matches `ALL`. */
  static storeIn(name: string): string {
    return /\{cache-([^-}]*)/.exec(name)?.[1] ?? '';
  }

  /** Whether it is the name of a copy or of a negative entry: leases, failures and owners lie beside them. */
  static isEntry(name: string): boolean {
    return name.includes(COPY) || name.includes(ABSENT);
  }

  /** The key of the call that it is the name of what was seen of; null for any other name. */
  static seenIn(name: string): string | null {
    const key = name.endsWith(SEEN) ? /\{cache-[^-]*-(.*)\}:seen$/.exec(name)?.[1] : undefined;
    return (
      key?.replaceAll(/%([0-9a-f]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))) ?? null
    );
  }

  /** How far the pass has come that deletes what was purged. */
  get sweep(): string {
    return taggedKey(`cache-${this.#store}`, 'sweep');
  }

  /** With it begin the names of all entries, and of everything beside them. */
  get entryPrefix(): string {
    return `${PREFIX}{cache-${this.#store}-`;
  }

  /** Matches the names of all entries, and of what lies beside them (Redis's glob syntax), of keys of that version. */
  entryPattern(version: string): string {
    return `${this.entryPrefix}${escaped(version)}%3a*`;
  }

  /** Where ends of flights are announced. Channels know no database numbers, so the number is part of the name. */
  flightsChannel(db: number): string {
    return channelName('cache', this.#store, String(db), 'flights');
  }
}

/** How often something was ended in the cache Redis of a store, counted in each bucket of a Cluster, else once. */
export function endingCountKeys(store: string, kind: RedisAddress['kind']): readonly string[] {
  const tags = kind === 'cluster' ? QUOTA_TAGS : QUOTA_TAGS.slice(0, 1);
  return tags.map((tag) => taggedKey(`quota-${tag}`, 'endings', store));
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

/** The same of the renewals of announced changes. */
export const renewalRateKey = (store: string): string => taggedKey(`store-${store}`, 'renewals');

/** A channel for messages. Channels have no slot. */
export function channelName(...parts: readonly string[]): string {
  return [`${PREFIX}channel`, ...parts.map(escaped)].join(':');
}
