/**
 * The commands with which each connection begins. ioredis sends them too, but goes on if Redis refuses: then a gateway
 * would work in database 0, perhaps among the keys of another environment, or with a Redis that does not know its user.
 */
import type { Redis } from 'ioredis';
import type { RedisAddress } from './address.ts';
import { HandshakeError } from './errors.ts';

/**
 * Makes the function that sends them once per connection. It rejects with HandshakeError if Redis refuses one of them, and
 * then sends them again when it is called again.
 */
export function handshake(
  { credentials: { username, password }, db }: Pick<RedisAddress, 'credentials' | 'db'>,
  connectionName: string,
): (client: Redis) => Promise<void> {
  /** The connections whose handshake was accepted. */
  const accepted = new WeakSet<Redis>();
  const followed = new WeakSet<Redis>();
  return async (client) => {
    if (accepted.has(client)) return;
    if (!followed.has(client)) {
      followed.add(client);
      client.on('close', () => accepted.delete(client));
    }
    const send = async (command: HandshakeError['command'], reply: Promise<unknown>): Promise<void> => {
      try {
        await reply;
      } catch (error) {
        throw error instanceof Error && error.name === 'ReplyError' ? new HandshakeError(command, db, error) : error;
      }
    };
    if (password !== null) {
      await send('AUTH', username === null ? client.auth(password) : client.auth(username, password));
    }
    if (db !== 0) await send('SELECT', client.select(db));
    await send('CLIENT SETNAME', client.client('SETNAME', connectionName));
    accepted.add(client);
  };
}
