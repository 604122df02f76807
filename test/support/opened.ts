/**
 * Everything that tests open, a gateway or a world of several, closes by itself: after the test, or after the last one of its
 * file.
 */
import { afterAll, afterEach, onTestFinished } from 'vitest';
import { StoreServer } from './store-server.ts';

/**
 * Opened once for all tests of the file; to be called outside of tests and hooks. A test that fails may leave its store at fault:
 * it is well again for the next one, which would wait for it in vain.
 */
export async function forFile<T extends { close(): unknown; readonly store?: unknown }>(
  opening: Promise<T> | T,
): Promise<T> {
  const opened = await opening;
  afterAll(async () => void (await opened.close()));
  afterEach(({ task }) => {
    if (task.result?.state === 'fail' && opened.store instanceof StoreServer) opened.store.heal();
  });
  return opened;
}

/** Opened by a test, or by a `beforeEach` for it, and closed when it is over: what was opened last first. */
export async function forTest<T extends { close(): unknown }>(opening: Promise<T> | T): Promise<T> {
  const opened = await opening;
  onTestFinished(async () => void (await opened.close()));
  return opened;
}
