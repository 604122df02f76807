/** The what-if models of a fleet reach each other through the state Redis. */
import { whatIfChannel, whatIfReportKey } from '../../redis/names.ts';
import type { RedisLink } from '../../redis/connection.ts';
import type { Board, Messages } from './ports.ts';

export interface RedisPlace {
  /** To the state Redis. It stays its owner's. */
  readonly link: Pick<RedisLink, 'run' | 'subscriber' | 'isUp'>;
  /** Names the store: processes in front of another one are told nothing, and not heard. */
  readonly store: string;
  /** This process. */
  readonly self: string;
}

export function redisMessages({ link, store, self }: RedisPlace): Messages {
  return {
    isUp: () => link.isUp(),
    send: (to, message) => link.run((redis) => redis.publish(whatIfChannel(store, to), message)),
    listen: (listener) => link.subscriber.listen(whatIfChannel(store, self), listener),
  };
}

export function redisBoard({ link, store, self }: RedisPlace): Board {
  return {
    isUp: () => link.isUp(),
    post: (text, keptForMs) => link.run((redis) => redis.set(whatIfReportKey(store, self), text, 'PX', keptForMs)),
    read: (ids) => link.run((redis) => redis.mget(ids.map((id) => whatIfReportKey(store, id)))),
    clear: () => link.run((redis) => redis.del(whatIfReportKey(store, self))),
  };
}
