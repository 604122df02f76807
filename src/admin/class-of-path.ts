/** Endpoints about one class of answers. */
import { CACHE_CLASSES, type CacheClass } from '../cache/times.ts';
import type { EndpointContext } from './endpoint.ts';
import { AdminError } from './errors.ts';

/** The class of the path. Throws AdminError 404 where there is none of that name. */
export function classOf({ params }: EndpointContext): CacheClass {
  const named = CACHE_CLASSES.find((cacheClass) => cacheClass === params['class']);
  if (named !== undefined) return named;
  throw new AdminError(404, `The path names no class of answers. The classes are ${CACHE_CLASSES.join(', ')}.`, {
    privateMessage: 'no such cache class',
  });
}
