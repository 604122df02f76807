/** Hashes of keys. None of them is cryptographic. */

/**
 * A 32-bit hash of a string, as an unsigned integer: FNV-1a, then `mix32`, because FNV's high bits hardly differ for
 * strings that differ only at their ends.
 */
export function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return mix32(hash);
}

/** MurmurHash3's finalizer: each bit of what goes in changes about half of those that come out, an unsigned integer. */
export function mix32(bits: number): number {
  let hash = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
