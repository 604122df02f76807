/** The content that an answer shows its reader, for tests that look for others' data in it. */
import type { Reply } from './gateway.ts';

/** Body and headers. `Link` repeats the reader's own search, which is left out of it. */
export function shownBy(
  path: string,
  { text, headers: { link, ...headers } }: Pick<Reply, 'text' | 'headers'>,
): string {
  const search = new URLSearchParams(path.split('?')[1]).get('search');
  const links = search === null ? link : String(link).replaceAll(new URLSearchParams({ search }).toString(), '');
  return text + JSON.stringify({ ...headers, link: links });
}
