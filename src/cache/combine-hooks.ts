/** Several listeners in the place of one. */
import type { CacheHooks } from './hooks.ts';

/** Each report goes to the first, then to the second. None is left out: the type says so. */
export function combineHooks(first: CacheHooks, second: CacheHooks): Required<CacheHooks> {
  return {
    onRead: (report) => {
      first.onRead?.(report);
      second.onRead?.(report);
    },
    onStoreCall: (report) => {
      first.onStoreCall?.(report);
      second.onStoreCall?.(report);
    },
    onLeaseWait: (report) => {
      first.onLeaseWait?.(report);
      second.onLeaseWait?.(report);
    },
    onFill: (report) => {
      first.onFill?.(report);
      second.onFill?.(report);
    },
    onRefresh: (report) => {
      first.onRefresh?.(report);
      second.onRefresh?.(report);
    },
    onRefreshFailed: (report) => {
      first.onRefreshFailed?.(report);
      second.onRefreshFailed?.(report);
    },
    onFleetFailed: (report) => {
      first.onFleetFailed?.(report);
      second.onFleetFailed?.(report);
    },
  };
}
