import { timesControlOn, givenRedis } from '../redis-harness.ts';

timesControlOn(givenRedis());
