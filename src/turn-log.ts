/** The log lines about what a gateway depends on: one when it goes down, one when it is back. */
import type { Turn } from './dependencies.ts';
import type { Logger } from './log/logger.ts';

type Words = Readonly<Record<string, string>>;

const REDIS: Words = {
  disconnected: 'Redis does not answer',
  subscriptionLost: 'Redis answers, but its messages do not arrive: nothing is served from memory',
  ok: 'Redis answers again',
};

/** By name and trouble. */
const WORDS: Readonly<Record<string, Words>> = {
  store: {
    degraded: 'the store is failing',
    'held-back': 'the store is failing: calls to it are held back, but for one a second',
    ok: 'the store answers again',
  },
  redis: REDIS,
  'redis-state': REDIS,
  'redis-cache': REDIS,
  quota: {
    degraded: 'quotas: this process goes on with its share of the limits',
    ok: 'quotas: exact over all processes again',
  },
  keys: {
    offline: 'keys: Redis cannot be asked; only keys that it confirmed lately are let in',
    'never-asked': 'keys: Redis could not be asked since the start; no key is let in until it answers',
    over: 'keys: Redis could not be asked for too long; no key is let in until it answers',
    deaf: 'keys: changes may be missed; each key is confirmed before it is used',
    ok: 'keys: every change is heard of again',
  },
  capacity: {
    degraded: 'there are as many requests or connections as there may be: others are refused',
    ok: 'nothing is refused for want of a place any more',
  },
  maintenance: { degraded: 'maintenance: the store is asked nothing', ok: 'maintenance has ended' },
};

export function logTurn(logger: Logger, { name, status, trouble, detail, fields, lastedMs }: Turn): void {
  const words = WORDS[name]?.[trouble ?? status];
  if (status === 'degraded') {
    logger.warn({ dependency: name, detail, ...fields }, words ?? `${name} is degraded`);
  } else {
    logger.info({ dependency: name, lastedMs }, words ?? `${name} is well again`);
  }
}
