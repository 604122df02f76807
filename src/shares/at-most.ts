/**
 * The options of an LRUCache that holds at most so many items, and no more memory than those that it has. With `max`, the library
 * allocates the room for all of them at once: 28 bytes each, in a process that may never hold one.
 */
export function atMost(items: number): { readonly maxSize: number; readonly sizeCalculation: () => number } {
  return { maxSize: items, sizeCalculation: () => 1 };
}
