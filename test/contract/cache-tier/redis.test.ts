import { cacheTierOn, givenRedis } from '../redis-harness.ts';

cacheTierOn(givenRedis());
