/** The journal in Redis, read and changed as another process, or an accident, would. */
import type { Redis } from 'ioredis';

export const STATE = 'evalgate:{keys}:state';
export const JOURNAL = 'evalgate:{keys}:journal';

type Raw = Pick<Redis, 'hget' | 'multi' | 'xrevrange' | 'call'>;

/** Appends an event, or what is none, as another process does. */
export async function appendRaw(raw: Raw, event: unknown, word = 'another'): Promise<void> {
  const [sequence = '0', after = ''] = ((await raw.hget(STATE, 'last')) ?? '').split(' ');
  const next = Number(sequence) + 1;
  const text = typeof event === 'string' ? event : JSON.stringify(event);
  await raw
    .multi()
    .xadd(JOURNAL, `${next}-0`, 'word', word, 'after', after, 'event', text)
    .hset(STATE, 'last', `${next} ${word}`)
    .exec();
}

/** Takes the last event off, as a failover does that loses it. */
export async function loseLast(raw: Raw): Promise<void> {
  const [last, before] = await raw.xrevrange(JOURNAL, '+', '-', 'COUNT', 2);
  const [id = '0-0', [, word = ''] = []] = before ?? [];
  await raw
    .multi()
    .xdel(JOURNAL, last?.[0] ?? '')
    .hset(STATE, 'last', `${Number.parseInt(id, 10)} ${word}`)
    .exec();
  await raw.call('XSETID', JOURNAL, id);
}
