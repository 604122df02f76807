/**
 * What a fleet is asked while its capacity is measured: who asks, and for what. Pure: the same random numbers make the
 * same requests.
 */

/** Each at the default limits, on which 9,600 keys together make 8,000 requests a second for an hour. */
export const KEYS = 9600;
/** Of each key's last hour, which began before the measurement did: four fifths of the default limit. */
export const HOUR_REQUESTS = 2400;
export const WORKSPACES = 1200;
export const CALLS_OF_A_WORKSPACE = 8;

export const KINDS = ['list', 'list, gzip', 'list, 304', 'single', 'transcript page, gzip'] as const;
export type Kind = (typeof KINDS)[number];

/** In percent; consumers that look for news and have it already are the 304s. */
export const SHARES: Readonly<Record<Kind, number>> = {
  list: 30,
  'list, gzip': 25,
  'list, 304': 15,
  single: 20,
  'transcript page, gzip': 10,
};

export interface MixedRequest {
  readonly kind: Kind;
  /** Index of the key that asks. */
  readonly key: number;
  readonly path: string;
}

/** A UUID for each number below 2^32. */
export function workspaceId(workspace: number): string {
  return `${workspace.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
}

export function callId(workspace: number, call: number): string {
  return `ev_${workspace}_${call}`;
}

/** Which workspace the key may read. */
export function workspaceOf(key: number): number {
  return key % WORKSPACES;
}

/** `random` gives numbers from 0 to below 1; three are taken. */
export function mixedRequest(random: () => number): MixedRequest {
  const kind = kindAt(random() * 100);
  const key = Math.floor(random() * KEYS);
  return { kind, key, path: pathOf(kind, workspaceOf(key), Math.floor(random() * CALLS_OF_A_WORKSPACE)) };
}

/** One request for each answer that the mix can ask for from the store, so that all of it has been asked for. */
export function everyFill(): readonly MixedRequest[] {
  return Array.from({ length: WORKSPACES }, (_, workspace) => workspace).flatMap((workspace) =>
    (['list', 'transcript page, gzip'] as const).map((kind) => ({
      kind,
      key: workspace,
      path: pathOf(kind, workspace, 0),
    })),
  );
}

/**
 * How many fills a second a fleet makes of answers that are each read so often a second, at random, and are fresh for so
 * long: a fill, then its freshness, then the wait for the next read.
 */
export function expectedFills({
  answers,
  readsPerSecond,
  freshSeconds,
}: {
  readonly answers: number;
  /** Of all of them together. */
  readonly readsPerSecond: number;
  readonly freshSeconds: number;
}): number {
  if (readsPerSecond === 0) return 0;
  return answers / (freshSeconds + answers / readsPerSecond);
}

/** Of what is read, the lists. */
export function listShare(): number {
  return (SHARES.list + SHARES['list, gzip'] + SHARES['list, 304']) / 100;
}

function kindAt(percent: number): Kind {
  let upTo = 0;
  for (const kind of KINDS) {
    upTo += SHARES[kind];
    if (percent < upTo) return kind;
  }
  return 'list';
}

function pathOf(kind: Kind, workspace: number, call: number): string {
  if (kind === 'single') return `/v2/calls/${callId(workspace, call)}`;
  if (kind === 'transcript page, gzip') return `/v2/calls/${callId(workspace, 0)}/transcript`;
  return `/v1/workspaces/${workspaceId(workspace)}/reports?limit=${CALLS_OF_A_WORKSPACE}`;
}
