import { givenRedis, quotaOn } from '../redis-harness.ts';

quotaOn(givenRedis(), 'Redis');
