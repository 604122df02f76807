/** Commands that never left this process: what they asked for was certainly not done. */

/** In ioredis' words: it has no code for it. */
const UNSENT = "Stream isn't writeable and enableOfflineQueue options is false";

/** Of a command that was never sent. */
export function unsentError(): Error {
  return new Error(UNSENT);
}

/** What failed came after a change that was sent, so it says nothing of whether the change was made. */
class AfterChangeError extends Error {
  override readonly name = 'AfterChangeError';
}

/** Whether the error, or what it was caused by, is that there was no connection to send a command on. */
export function isUnsent(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof AfterChangeError) return false;
  return error.message === UNSENT || isUnsent(error.cause);
}

/** Runs what follows a change that was made. That it could not be sent itself is not taken for the change's own failure. */
export async function afterChange(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    throw new AfterChangeError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}
