/** Whatever a test file opens at its top, a gateway or a world of several, is closed after its last test. */
import { afterAll } from 'vitest';

/** Opened once for all tests of the file; to be called outside of tests and hooks. */
export async function forFile<T extends { close(): unknown }>(opening: Promise<T> | T): Promise<T> {
  const opened = await opening;
  afterAll(async () => void (await opened.close()));
  return opened;
}
