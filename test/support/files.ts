/** Files that tests write, in folders of their own: `fileOf` for one of a test, a folder for more, or for those of a file of tests. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export interface Folder {
  readonly path: string;
  /** Returns the path. */
  write(name: string, content: string | Uint8Array): string;
  close(): void;
}

export function openFolder(): Folder {
  const path = mkdtempSync(join(tmpdir(), 'evalgate-'));
  const write = (name: string, content: string | Uint8Array): string => {
    const file = join(path, name);
    writeFileSync(file, content);
    return file;
  };
  return { path, write, close: () => rmSync(path, { recursive: true, force: true }) };
}

/** The path of a file with that content, which goes when the test is over. */
export function fileOf(content: string | Uint8Array, name = 'own.yaml'): string {
  const folder = openFolder();
  onTestFinished(() => folder.close());
  return folder.write(name, content);
}
