/** What Sentinels say of the primary. */
import { Redis } from 'ioredis';
import { describeNode, type RedisAddress, type RedisNode } from './address.ts';
import { askOptions } from './options.ts';

export interface SentinelAnswer {
  /** Host and port of the Sentinel. */
  readonly name: string;
  /** Host and port of the primary; null where it knows none of that name, or doesn't answer. */
  readonly primary: string | null;
}

/** Asks each Sentinel of the address. Never rejects. */
export function askSentinels(address: RedisAddress): Promise<readonly SentinelAnswer[]> {
  return Promise.all(
    address.nodes.map(async (node) => {
      const primary = await askForPrimary(address, node).catch(() => null);
      return { name: describeNode(node), primary };
    }),
  );
}

async function askForPrimary(address: RedisAddress, node: RedisNode): Promise<string | null> {
  const client = new Redis(askOptions(address, node));
  client.on('error', () => undefined);
  try {
    await client.connect();
    const reply: unknown = await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', address.primary);
    return Array.isArray(reply) ? reply.map(String).join(':') : null;
  } finally {
    client.disconnect();
  }
}

/** Why no primary was found, where that is what has failed: the client itself counts the tries. */
export function sentinelFault(error: Error, lastSentinelError: Error | null): Error {
  if (!error.message.startsWith('All sentinels are unreachable') || lastSentinelError === null) return error;
  if (lastSentinelError.message.includes('invalid reply')) {
    return new Error('the Sentinels know no primary of that name');
  }
  const [, cause = 'no answer'] = / because (.*)$/s.exec(lastSentinelError.message) ?? [];
  return new Error(`no Sentinel answers: ${cause}`);
}
