/** Lines of the log for a person. A module of its own: a gateway that nobody watches needs none of it. */
import { prettyFactory } from 'pino-pretty';
import type { LineFormat } from './logger.ts';

export function createPrettyFormat({ colorize }: { readonly colorize: boolean }): LineFormat {
  const format = prettyFactory({
    colorize,
    ignore: 'service,pid',
    translateTime: 'SYS:HH:MM:ss.l',
    singleLine: true,
  });
  return (line) => format(line) ?? '';
}
