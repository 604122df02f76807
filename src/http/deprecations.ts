/** What the answers of a deprecated operation say of it: `Deprecation` (RFC 9745), `Sunset` (RFC 8594), and a link. */
import { type Deprecation, deprecationOf } from '../domain/operations.ts';
import { type FieldLines, fieldLines } from './head.ts';
import type { NoticesOf } from './paths.ts';
import type { Context, Match } from './state.ts';

/** Made once for each operation, when it is routed. */
export function noticesBy(deprecations: readonly Deprecation[]): NoticesOf {
  return (surface, name) => {
    const deprecation = deprecationOf(deprecations, surface, name);
    return deprecation === null ? '' : noticeFields(deprecation);
  };
}

/** Whatever the request will be answered with. */
export function addNotices({ state }: Context, { route }: Match): void {
  state.fields += route.notices;
}

function noticeFields({ fromMs, untilMs, link }: Deprecation): FieldLines {
  return fieldLines({
    Deprecation: `@${Math.floor(fromMs / 1000)}`,
    ...(untilMs === null ? {} : { Sunset: new Date(untilMs).toUTCString() }),
    ...(link === null ? {} : { Link: `<${link}>; rel="deprecation"` }),
  });
}
