/** Commands to Redis, as the gateway sees them. */
import { Counter, type Registry } from 'prom-client';
import type { RedisRole } from '../../redis/connection.ts';
import { CellHistogram, made1 } from './cells.ts';
import type { MetricRecorders } from './recorders.ts';

/** From what a Redis next door takes to the longest that a command waits. */
const COMMAND_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

export function redisRecorders(registry: Registry): Pick<MetricRecorders, 'redisCommand'> {
  const registers = [registry];
  const durations = new CellHistogram<'role'>({
    name: 'evalgate_redis_command_duration_seconds',
    help: 'Time that commands to Redis took as this process saw it, its own delays included; also of those that failed, but not of those that could not be sent.',
    labelNames: ['role'],
    buckets: COMMAND_BUCKETS,
    registers,
  });
  const failures = new Counter({
    name: 'evalgate_redis_command_failures_total',
    help: 'Commands to Redis that failed: refused by it, without an answer in time (timeout), cut off before the answer (lost), or without a connection to send them on (unsent).',
    labelNames: ['role', 'reason'],
    registers,
  });
  const durationsOf = made1((role: RedisRole) => durations.cell({ role }));
  return {
    redisCommand: ({ role, outcome, seconds }) => {
      if (outcome !== 'unsent') durationsOf(role).observe(seconds);
      if (outcome !== 'answered') failures.inc({ role, reason: outcome });
    },
  };
}
