/** How the process's own log is written: for people where one is watching, as JSON everywhere else. */
import type { LineFormat } from './logger.ts';

/** Null for JSON. */
export async function terminalFormat(): Promise<LineFormat | null> {
  if (!process.stderr.isTTY) return null;
  const { createPrettyFormat } = await import('./pretty.ts');
  return createPrettyFormat({ colorize: process.env['NO_COLOR'] === undefined });
}
