import { MemoryTier } from '../../../src/cache/memory-tier.ts';
import { cacheTierContract } from './cases.ts';

cacheTierContract(() => new MemoryTier({ maxBytes: 2 ** 20 }));
