/** What the ports promise, kept by three nodes of a Cluster together. */
import { describe } from 'vitest';
import { spawnCluster } from '../support/redis.ts';
import {
  cacheTierOn,
  givenRedis,
  leasesOn,
  maintenanceOn,
  purgeLogOn,
  quotaOn,
  registryOn,
  timesControlOn,
} from './redis-harness.ts';

const cluster = givenRedis(() => spawnCluster());

describe('cache tier: a Cluster', () => {
  cacheTierOn(cluster);
});
describe('leases: a Cluster', () => {
  leasesOn(cluster);
});
describe('purge log: a Cluster', () => {
  purgeLogOn(cluster);
});
describe('times in force: a Cluster', () => {
  timesControlOn(cluster);
});
describe('maintenance: a Cluster', () => {
  maintenanceOn(cluster);
});
registryOn(cluster, 'a Cluster');
quotaOn(cluster, 'a Cluster');
