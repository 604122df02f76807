import { givenRedis, trialLedgerOn } from '../redis-harness.ts';

trialLedgerOn(givenRedis());
