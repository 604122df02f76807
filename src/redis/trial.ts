/**
 * What a gateway needs of a Redis, tried out on a name of its own: each command that it sends, by a script as most are sent.
 * An access control list is checked command by command also within a script, so a gateway that only saw its connection stand
 * would serve without limits, or without messages.
 */
import { defineScript } from './script.ts';

/** Redis deletes the name if this process ends between writing and deleting it. */
const TRIAL_TTL_MS = 5000;

const BEGIN = `
local key, call = KEYS[1], redis.call
local time = call('TIME')
call('SET', key, time[1], 'PX', ${TRIAL_TTL_MS})
call('GET', key)
call('PTTL', key)
call('EXISTS', key)
call('DEL', key)
call('HSET', key, 'field', '1', 'body', '')
call('PEXPIRE', key, ${TRIAL_TTL_MS})
call('HGET', key, 'field')
call('HMGET', key, 'field', 'body')
`;

const END = `
call('DEL', key)
call('PUBLISH', ARGV[1], 'trial')
return 1
`;

const CACHE = `
call('HSTRLEN', key, 'body')
call('HGETALL', key)
call('HVALS', key)
call('HDEL', key, 'field')
call('TYPE', key)
call('SCAN', 0, 'COUNT', 1)
call('UNLINK', key)
`;

const STATE = `
call('HGETALL', key)
call('HKEYS', key)
call('HSETNX', key, 'other', '1')
call('HLEN', key)
call('HEXISTS', key, 'field')
call('HINCRBY', key, 'field', 1)
call('HSETNX', key, 'other', '1')
call('HSCAN', key, 0)
call('HDEL', key, 'field')
call('DEL', key)
call('INCRBY', key, 1)
call('PEXPIRE', key, ${TRIAL_TTL_MS})
call('MGET', key)
call('DEL', key)
call('RPUSH', key, '1', '2')
call('PEXPIRE', key, ${TRIAL_TTL_MS})
call('LPUSH', key, '0')
call('LINDEX', key, 0)
call('LLEN', key)
call('LRANGE', key, 0, -1)
call('LSET', key, 0, '1')
call('LREM', key, 1, '2')
call('LTRIM', key, -1, -1)
call('RPOP', key)
call('ZADD', key, 1, 'member')
call('PEXPIRE', key, ${TRIAL_TTL_MS})
call('ZRANGE', key, 0, -1)
call('ZRANGEBYSCORE', key, 0, 1)
call('ZREMRANGEBYSCORE', key, 2, 3)
call('ZREMRANGEBYRANK', key, 5, 6)
call('ZREM', key, 'member')
call('XADD', key, '1-0', 'field', '1')
call('PEXPIRE', key, ${TRIAL_TTL_MS})
call('XTRIM', key, 'MAXLEN', '~', 10)
call('XRANGE', key, '-', '+')
call('XREVRANGE', key, '+', '-', 'COUNT', 1)
call('XREAD', 'STREAMS', key, '0')
`;

/** By what the Redis is used for. KEYS: a name of our own. ARGV: a channel. */
export const TRIALS = {
  state: defineScript('tryOutState', BEGIN + STATE + END),
  cache: defineScript('tryOutCache', BEGIN + CACHE + END),
} as const;
