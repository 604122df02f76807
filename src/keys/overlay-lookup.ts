/** Two places to find keys in, as one. */
import type { ApiKey, KeyHash, KeyLookup } from './key.ts';

/** `first` is asked first, and alone for the keys that it knows; it knows at once which those are. */
export function overlayLookup(first: KeyLookup, second: KeyLookup): KeyLookup {
  return {
    find: async (hash: KeyHash) => (await first.find(hash)) ?? (await second.find(hash)),
    peek: (hash: KeyHash) => first.peek(hash) ?? second.peek(hash),
    isIssued: (hash: KeyHash) => first.peek(hash) !== undefined || (second.isIssued?.(hash) ?? false),
    touch: (key: ApiKey) => {
      const owner = first.peek(key.hash) === undefined ? second : first;
      owner.touch(key);
    },
  };
}
