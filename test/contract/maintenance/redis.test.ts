import { maintenanceOn, givenRedis } from '../redis-harness.ts';

maintenanceOn(givenRedis());
