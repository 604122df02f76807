/** The operations and reads of a round, and the rules that they break. Pure. */
import type { Sample } from '../../support/load.ts';
import { mostWithin } from '../bar.ts';
import type { HostName } from './world.ts';

export interface Operation {
  readonly kind: 'edit' | 'purge' | 'revoke';
  /** The host of the gateway that was asked. */
  readonly at: HostName;
  /** The id of the record, or of the key. */
  readonly id: string;
  /** The version of the record from then on. */
  readonly version: number;
  readonly endedMs: number;
  readonly status: number;
  readonly isAcknowledged: boolean;
  /** Acknowledged without the warning that a failover may undo it. */
  readonly isSure: boolean;
}

export interface Round {
  readonly operations: readonly Operation[];
  /** Reads of known keys without limits, at all gateways. */
  readonly warm: readonly Sample[];
  /** Reads of one key with a limit. */
  readonly limited: readonly Sample[];
  readonly perMinute: number;
  /** How many gateways there are. */
  readonly gateways: number;
  /** How many requests the primary may have counted that no replica had: those of its last seconds. */
  readonly uncounted: number;
  /** At rest, after all is whole again: the version of each record at each gateway. */
  readonly versions: readonly { readonly at: HostName; readonly id: string; readonly version: number }[];
  /** At rest: the status of each revoked key at each gateway. */
  readonly statuses: readonly { readonly at: HostName; readonly keyId: string; readonly status: number }[];
}

/** The sentences of the rules that the round broke. */
export function brokenRules(round: Round): readonly string[] {
  return [...crossed(round), ...unserved(round), ...revived(round), ...outdated(round), ...overAdmitted(round)];
}

/** K7a: every answer is of the record that was asked for. */
function crossed({ warm, limited }: Round): readonly string[] {
  return [...warm, ...limited]
    .filter(({ status, url, id }) => status === 200 && !url.endsWith(`/${id}`))
    .map(({ url, id }) => `${url} was answered with ${id}`);
}

/** A key that is known and a record that is in memory are served, whatever is cut. */
function unserved({ warm }: Round): readonly string[] {
  return warm
    .filter(({ status }) => status !== 200)
    .map(({ url, status, atMs }) => `${url} was answered ${status} at ${new Date(atMs).toISOString()}`);
}

/** A revocation that was acknowledged without a warning holds everywhere in the end. */
function revived({ operations, statuses }: Round): readonly string[] {
  const sure = operations.filter(({ kind, isSure }) => kind === 'revoke' && isSure);
  return sure.flatMap(({ id, at }) =>
    statuses
      .filter(({ keyId, status }) => keyId === id && status !== 403)
      .map(({ at: where, status }) => `the key ${id}, revoked at ${at}, is answered ${status} at ${where}`),
  );
}

/** No gateway goes on with a copy from before an acknowledged purge or change; a lost purge is one of everything. */
function outdated({ operations, versions }: Round): readonly string[] {
  const announced = operations.filter(({ kind, isAcknowledged }) => kind !== 'revoke' && isAcknowledged);
  return announced.flatMap(({ kind, id, at, version }) =>
    versions
      .filter((one) => one.id === id && one.version < version)
      .map((one) => `${one.at} has version ${one.version} of ${id}, after the ${kind} of version ${version} at ${at}`),
  );
}

/**
 * No minute has more than the limit; beyond it, only what processes without Redis admit by their shares, and what a lost
 * primary had counted alone.
 */
function overAdmitted({ limited, perMinute, gateways, uncounted }: Round): readonly string[] {
  const times = limited.filter(({ status }) => status === 200).map(({ atMs }) => atMs);
  const [most, bound] = [mostWithin(times, 60_000), perMinute + perMinute * ((gateways - 1) / gateways) + uncounted];
  return most <= bound ? [] : [`${most} admitted within a minute of ${perMinute}, at most ${bound} explained`];
}
