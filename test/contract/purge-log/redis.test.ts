import { purgeLogOn, givenRedis } from '../redis-harness.ts';

purgeLogOn(givenRedis());
