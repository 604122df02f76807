/** Where keys are kept, as the commands see it: through the admin listener of a gateway, or in Redis itself. */
import type { KeyView as ShownKey } from '../../admin/key-view.ts';
import type { ImportedKey } from '../../keys/key.ts';

/** A newer listener may know scopes that this program doesn't. */
export type KeyView = Omit<ShownKey, 'scopes'> & { readonly scopes: readonly string[] };

/** A key just made, with the key itself, which is shown this once. */
export interface IssuedKeyView {
  readonly key: KeyView;
  readonly token: string;
}

/** What is asked of a new key, in the words of the admin listener. */
export interface WantedKey {
  readonly name: string;
  readonly workspaceIds: readonly string[];
  readonly scopes: readonly string[];
  readonly perMinute?: number;
  readonly perHour?: number;
  /** ISO 8601. */
  readonly expiresAt?: string;
}

/** A checked line of an import: as it was written, and what it means. */
export interface ImportLine {
  readonly written: unknown;
  readonly key: ImportedKey;
}

/** Every method rejects with CliError, in the same words for both ways. */
export interface KeyOffice {
  create(wanted: WantedKey): Promise<IssuedKeyView>;
  list(): Promise<readonly KeyView[]>;
  show(keyId: string): Promise<KeyView>;
  deprecate(keyId: string): Promise<KeyView>;
  revoke(keyId: string): Promise<KeyView>;
  rotate(keyId: string, overlapMs: number): Promise<IssuedKeyView>;
  /** All or none. */
  importKeys(lines: readonly ImportLine[]): Promise<{ readonly added: number; readonly replaced: number }>;
  close(): Promise<void>;
}
