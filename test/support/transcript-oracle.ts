/**
 * The rules of paging written down a second time, as plainly as can be and without regard to cost, to compare the
 * pager with. It segments every text as a whole and holds it as an array of clusters of code points.
 */
import type { TranscriptPage } from '../../src/transcript/pager.ts';

interface OraclePage {
  readonly segments: { readonly index: number; readonly text: string }[];
  endedBy: 'characters' | 'segments' | 'end';
}

/** All pages of the segments; `joint` stands between two segments of a page. */
export function oraclePages(
  texts: readonly string[],
  joint: '' | '\n',
  pageSize: number,
  maxChars: number,
): TranscriptPage[] {
  const pages: OraclePage[] = [];
  let page: OraclePage | null = null;
  const close = (reason: OraclePage['endedBy']): void => {
    if (page !== null) pages.push({ ...page, endedBy: reason });
    page = null;
  };
  const used = (): number => (page === null ? 0 : countPoints(joinPage(page, joint)));
  const add = (index: number, text: string): void => {
    page ??= { segments: [], endedBy: 'end' };
    page.segments.push({ index, text });
  };
  const count = (): number => page?.segments.length ?? 0;

  for (const [index, text] of texts.entries()) {
    if (count() === pageSize) close('segments');
    const jointPoints = count() > 0 ? joint.length : 0;
    if (used() + jointPoints + countPoints(text) <= maxChars) {
      add(index, text);
      continue;
    }
    close('characters');
    let clusters = clustersOf(text);
    while (sum(clusters) > maxChars) {
      const taken: string[] = [];
      while (clusters[0] !== undefined && taken.length + clusters[0].length <= maxChars) {
        taken.push(...(clusters.shift() ?? []));
      }
      if (taken.length === 0) {
        const [first = [], ...others] = clusters;
        taken.push(...first.slice(0, maxChars));
        clusters = [first.slice(maxChars), ...others];
      }
      add(index, taken.join(''));
      close('characters');
    }
    add(index, clusters.flat().join(''));
  }
  close('end');
  return pages.map(({ segments, endedBy }, i) => ({
    segments,
    text: segments.map((segment) => segment.text).join(joint),
    totalCount: texts.length,
    totalPages: pages.length,
    hasMore: i < pages.length - 1,
    truncated: endedBy === 'characters',
  }));
}

function joinPage(page: OraclePage, joint: string): string {
  return page.segments.map((segment) => segment.text).join(joint);
}

export function countPoints(text: string): number {
  return Array.from(text).length;
}

function clustersOf(text: string): string[][] {
  const segmenter = new Intl.Segmenter('und', { granularity: 'grapheme' });
  return [...segmenter.segment(text)].map((cluster) => Array.from(cluster.segment));
}

function sum(clusters: readonly string[][]): number {
  return clusters.reduce((points, cluster) => points + cluster.length, 0);
}
