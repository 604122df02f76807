/**
 * A place in the feed of some workspaces, as consumers keep it: opaque to them, and about nothing but their own workspaces. It
 * names the feed itself (another one begins when Redis has lost events), the set of workspaces, and how many events of each
 * the consumer has had. So a change of another workspace never shows in it (K7a: a foreign change looks like none).
 */
import { hash } from 'node:crypto';
import { z } from 'zod';

export interface FeedPlace {
  /** A random word that names the feed. */
  readonly feed: string;
  /** By workspace, the number of the last event that was read. */
  readonly numbers: ReadonlyMap<string, number>;
}

const RADIX = 36;
const SET_LENGTH = 16;
const cursorSchema = z.tuple([z.string(), z.string(), z.string()]);

/** In the order of its numbers. */
function inOrder(workspaces: readonly string[]): readonly string[] {
  return [...new Set(workspaces)].toSorted();
}

/** Tells one set of workspaces from another. */
function setOf(ordered: readonly string[]): string {
  return hash('sha256', ordered.join(' '), 'base64url').slice(0, SET_LENGTH);
}

/** `workspaces`: those of the key. */
export function writeCursor({ feed, numbers }: FeedPlace, workspaces: readonly string[]): string {
  const ordered = inOrder(workspaces);
  const counts = ordered.map((workspace) => (numbers.get(workspace) ?? 0).toString(RADIX));
  return Buffer.from(JSON.stringify([feed, setOf(ordered), counts.join('.')])).toString('base64url');
}

/** `foreign`: a cursor of other workspaces. Null for a text that is no cursor. */
export function readCursor(cursor: string, workspaces: readonly string[]): FeedPlace | 'foreign' | null {
  const ordered = inOrder(workspaces);
  let parts: z.output<typeof cursorSchema>;
  try {
    parts = cursorSchema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
  } catch {
    return null;
  }
  const [feed, set, written] = parts;
  const numbers = written
    .split('.')
    .map((number) => (/^[0-9a-z]{1,11}$/.test(number) ? Number.parseInt(number, RADIX) : -1));
  if (numbers.includes(-1)) return null;
  if (set !== setOf(ordered) || numbers.length !== ordered.length) return 'foreign';
  return { feed, numbers: new Map(ordered.map((workspace, index) => [workspace, numbers[index] ?? 0])) };
}
