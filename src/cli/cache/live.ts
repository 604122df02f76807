/** Figures that are shown again and again until there is nothing more to come. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, systemClock } from '../../clock.ts';
import { AdminCallError } from '../admin-client.ts';
import type { Terminal } from '../terminal.ts';

/** What showing live figures needs to know of the world besides the terminal. */
export interface Live {
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Whether what was written can be written over. */
  readonly isScreen: boolean;
  pause(durationMs: number): Promise<void>;
}

/** The process's own. */
export function processLive(): Live {
  return {
    clock: systemClock,
    isScreen: process.stdout.isTTY,
    pause: (durationMs) => sleep(durationMs),
  };
}

/** What one look found. */
export interface Look {
  readonly text: string;
  /** Whether another look could find nothing new. */
  readonly isOver: boolean;
}

/** The processes of a fleet tell their figures about once a second. */
const EVERY_MS = 1000;
const CLEAR = '\u001B[H\u001B[2J';

/**
 * Looks once a second and shows what is found: on a screen over what was there before, else below it with an empty line
 * between, and there only what differs. Resolves when it is over. The first look's failure is thrown; later on a gateway
 * that gives no answer, because it is started anew for instance, is told and asked again.
 */
export async function watchLive(terminal: Terminal, live: Live, look: () => Promise<Look>): Promise<void> {
  let last = await look();
  show(terminal, live, { text: last.text, isFirst: true });
  let shown = last.text;
  while (!last.isOver) {
    await live.pause(EVERY_MS);
    const next = await lookAgain(look, last);
    last = { text: next.text, isOver: next.isOver };
    const text = next.trouble === null ? next.text : `${next.text}\n${next.trouble}`;
    if (text !== shown) show(terminal, live, { text, isFirst: false });
    shown = text;
  }
}

function show(terminal: Terminal, { isScreen }: Live, { text, isFirst }: { text: string; isFirst: boolean }): void {
  terminal.out(`${isScreen ? CLEAR : isFirst ? '' : '\n'}${text}\n`);
}

/** Throws what another look won't mend. */
async function lookAgain(look: () => Promise<Look>, last: Look): Promise<Look & { readonly trouble: string | null }> {
  try {
    return { ...(await look()), trouble: null };
  } catch (error) {
    if (!(error instanceof AdminCallError) || (error.status !== null && error.status < 500)) throw error;
    return { ...last, trouble: `These are the last known figures. ${error.finding}` };
  }
}
