import { leasesOn, givenRedis } from '../redis-harness.ts';

leasesOn(givenRedis());
