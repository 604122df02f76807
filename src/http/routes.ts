/** All routes of the public API. */
import { listChanges } from './changes.ts';
import type { Route } from './state.ts';
import { V1_ROUTES } from './v1.ts';
import { V2_ROUTES } from './v2.ts';

/** `hasFeed`: whether there is a feed of changes, since the store announces all of them. */
export function routesOf(hasFeed: boolean): readonly Route[] {
  return [...V1_ROUTES, ...V2_ROUTES, ...(hasFeed ? [listChanges] : [])];
}
