/**
 * The commands with which each connection begins. ioredis can send some of them, but goes on if Redis refuses: then a gateway
 * would work in database 0, perhaps among the keys of another environment, or with a Redis that does not know its user.
 */
import type { Redis } from 'ioredis';
import type { RedisAddress } from './address.ts';
import { HandshakeError, replyCode } from './errors.ts';

/**
 * Makes the function that sends them once per connection. It rejects with HandshakeError if Redis refuses one of them, and
 * then sends them again when it is called again. The connection's name is a nicety: without it all goes on.
 */
export function handshake(
  { credentials: { username, password }, db }: Pick<RedisAddress, 'credentials' | 'db'>,
  connectionName: string,
): (client: Redis) => Promise<void> {
  /** The connections whose handshake was accepted. */
  const accepted = new WeakSet<Redis>();
  return async (client) => {
    if (accepted.has(client)) return;
    const send = async (command: HandshakeError['command'], reply: Promise<unknown>): Promise<void> => {
      try {
        await reply;
      } catch (error) {
        throw replyCode(error) === null ? error : new HandshakeError(command, db, error);
      }
    };
    if (password !== null) {
      await send('AUTH', username === null ? client.auth(password) : client.auth(username, password));
    }
    if (db !== 0) await send('SELECT', client.select(db));
    accepted.add(client);
    client.client('SETNAME', connectionName).catch(() => undefined);
  };
}
