/** What one process of a fleet tells the others of itself. */
import { z } from 'zod';

const aboutSchema = z.object({
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  /** Unix milliseconds. */
  startedAtMs: z.int(),
  status: z.enum(['starting', 'ready', 'draining']),
  /** Names the store that the process stands in front of: two over one Redis may be in front of different ones. */
  store: z.string(),
});

/** What a process tells of itself. */
export type AboutMember = Readonly<z.output<typeof aboutSchema>>;

export interface Member extends AboutMember {
  readonly id: string;
}

/** Null for what another release tells in another way: such a process counts, and no more is known of it. */
export function aboutOf(text: string | undefined): AboutMember | null {
  try {
    return aboutSchema.parse(JSON.parse(text ?? ''));
  } catch {
    return null;
  }
}
