/**
 * What processes tell each other of the key registry. A change is `<version before> <version after> <hashes>`: whoever
 * held another version before has missed one. A beat is `<number> <version>`. `-` is the version of a registry that was
 * never changed; `*` stands for too many hashes to name.
 */
import type { KeyHash } from './key.ts';

export interface ChangeMessage {
  readonly before: string;
  readonly after: string;
  /** Null where anything may have changed. */
  readonly hashes: readonly KeyHash[] | null;
}

export interface BeatMessage {
  readonly number: number;
  readonly version: string;
}

const MAX_NAMED = 1000;
const CHANGE = /^(\S{1,64}) (\S{1,64}) (\*|[0-9a-f]{64}(?:,[0-9a-f]{64})*)$/;
const BEAT = /^([0-9]{1,15}) (\S{1,64})$/;

/** The last part of a change's message; the script that makes the change puts the versions before it. */
export function describeChange(hashes: readonly KeyHash[]): string {
  return hashes.length > MAX_NAMED ? '*' : hashes.join(',');
}

/** Null for what is no such message. */
export function parseChange(message: string): ChangeMessage | null {
  const [, before, after, hashes] = CHANGE.exec(message) ?? [];
  if (before === undefined || after === undefined || hashes === undefined) return null;
  return { before, after, hashes: hashes === '*' ? null : hashes.split(',') };
}

/** Null for what is no such message. */
export function parseBeat(message: string): BeatMessage | null {
  const [, number, version] = BEAT.exec(message) ?? [];
  return number === undefined || version === undefined ? null : { number: Number(number), version };
}
