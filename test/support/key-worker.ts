/** A gateway process's key registry alone, in a process of its own. Argument: the address of Redis. */
import { type KeyCommand, keyCommandSchema } from './key-commands.ts';
import { hears, NEW_KEY, startKeyFleet, until } from './key-fleet.ts';
import { answerCalls } from './worker-calls.ts';

const GIVE_UP_MS = 5000;

const { registry } = await startKeyFleet({ url: process.argv[2] ?? '' });
let watched: Promise<unknown> | null = null;

/** Since the epoch, finer than Date.now. */
function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Only after the word of its creation: that makes a process forget what it has looked up before. */
async function know(hash: string): Promise<void> {
  await until(() => registry.isIssued(hash), GIVE_UP_MS);
  await until(async () => {
    await registry.find(hash);
    return registry.peek(hash)?.status === 'active';
  }, GIVE_UP_MS);
}

async function statusOf(hash: string): Promise<string | null> {
  return (await registry.find(hash))?.status ?? null;
}

/** As a gateway looks a key up for each request: in its memory where that can be trusted, else in Redis. */
async function watch(hash: string): Promise<{ readonly refusedAtMs: number }> {
  await until(async () => (await statusOf(hash)) === 'revoked', GIVE_UP_MS);
  return { refusedAtMs: nowMs() };
}

async function answer(command: KeyCommand): Promise<unknown> {
  switch (command.name) {
    case 'create': {
      const { key } = await registry.create(NEW_KEY);
      return { keyId: key.keyId, hash: key.hash };
    }
    case 'hear':
      return hears(registry);
    case 'know':
      return know(command.hash);
    case 'watch':
      watched = watch(command.hash);
      // Whoever asks for the refusal is told of a failure.
      watched.catch(() => undefined);
      return null;
    case 'refused':
      return watched;
    case 'status':
      return statusOf(command.hash);
    case 'revoke':
      break;
  }
  const sinceMs = nowMs();
  await registry.setStatus(command.keyId, 'revoked');
  return { sinceMs };
}

answerCalls((command) => answer(keyCommandSchema.parse(command)));
