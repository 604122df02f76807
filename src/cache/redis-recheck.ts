/** Comparing memory with the fleet after a time in which this process could not hear of what others stored. */
import type { MemoryTier } from './memory-tier.ts';
import type { RedisTier } from './redis-tier.ts';

/** Keys asked for at a time. */
const BATCH = 200;

/** Drops from memory what the fleet has a newer copy of. Rejects where Redis can't be asked any more. */
export async function recheckMemory(memory: MemoryTier, tier: Pick<RedisTier, 'filledAtMs'>): Promise<void> {
  const keys = memory.keys();
  for (let i = 0; i < keys.length; i += BATCH) {
    await Promise.all(
      keys.slice(i, i + BATCH).map(async (key) => {
        const filledAtMs = await tier.filledAtMs(key);
        if (filledAtMs !== null) memory.deleteOlder(key, filledAtMs);
      }),
    );
  }
}
