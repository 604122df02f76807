/** The `Link` header of lists and of transcript pages: where their other pages are (RFC 8288). */

export interface PageOf {
  /** The page that was asked for, from 1. */
  readonly page: number;
  /** How many there are; 0 if there is nothing. */
  readonly totalPages: number;
}

/**
 * Links to the first, the previous, the next and the last page, as far as there are such. `parameters` are those that the
 * request has beside `page`; one that is null is left out. The links are relative to the address of the request (RFC 3986,
 * section 5.2), so that they hold behind any prefix and under any host name.
 */
export function pageLinks(
  { page, totalPages }: PageOf,
  parameters: Readonly<Record<string, string | number | null>>,
): string {
  const query = new URLSearchParams({ page: '1' });
  for (const [name, value] of Object.entries(parameters)) if (value !== null) query.set(name, String(value));
  const pages: readonly (readonly [rel: string, page: number, exists: boolean])[] = [
    ['first', 1, true],
    ['prev', Math.min(page - 1, totalPages), page > 1 && totalPages > 0],
    ['next', page + 1, page < totalPages],
    ['last', totalPages, totalPages > 0],
  ];
  return pages
    .filter(([, , exists]) => exists)
    .map(([rel, number]) => {
      query.set('page', String(number));
      return `<?${query.toString()}>; rel="${rel}"`;
    })
    .join(', ');
}
