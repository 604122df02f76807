/** What the ports promise, kept by three nodes of a Cluster together. */
import { describe } from 'vitest';
import { spawnCluster } from '../support/redis.ts';
import { givenRedis, quotaOn, registryOn, trialLedgerOn } from './redis-harness.ts';

const cluster = givenRedis(() => spawnCluster());

describe('trials: a Cluster', () => {
  trialLedgerOn(cluster);
});
registryOn(cluster, 'a Cluster');
quotaOn(cluster, 'a Cluster');
