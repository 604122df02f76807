/** The shape of JSON: names of members and kinds of values, of several documents laid over each other. */

interface Shape {
  readonly kinds: Set<string>;
  readonly members: Map<string, Shape>;
  items: Shape | null;
  /** How many objects were laid over each other here, and in how many of them it was there. */
  objects: number;
  seen: number;
}

function empty(): Shape {
  return { kinds: new Set(), members: new Map(), items: null, objects: 0, seen: 0 };
}

/** Lines of the merged shape of all documents; a member that some lack has a question mark. */
export function shapeOf(documents: readonly unknown[]): readonly string[] {
  const shape = empty();
  for (const document of documents) add(shape, document);
  return linesOf(shape, '');
}

function add(shape: Shape, value: unknown): void {
  shape.seen += 1;
  if (Array.isArray(value)) {
    shape.kinds.add('list');
    shape.items ??= empty();
    for (const item of value) add(shape.items, item);
  } else if (typeof value === 'object' && value !== null) {
    shape.kinds.add('object');
    shape.objects += 1;
    for (const [name, member] of Object.entries(value)) {
      let inner = shape.members.get(name);
      if (inner === undefined) shape.members.set(name, (inner = empty()));
      add(inner, member);
    }
  } else {
    shape.kinds.add(kindOf(value));
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value !== 'string') return typeof value;
  if (/^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/.test(value)) return 'time';
  return /^\d+(?:ms|s|m|h|d)$/.test(value) ? 'duration' : 'string';
}

function linesOf(shape: Shape, indent: string): string[] {
  const members = [...shape.members].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const own = members.flatMap(([name, inner]) => {
    const isOptional = inner.seen < shape.objects;
    const plain = [...inner.kinds].filter((kind) => kind !== 'object' && kind !== 'list').toSorted();
    const nested = [...inner.kinds].filter((kind) => kind === 'object' || kind === 'list').toSorted();
    const items = inner.items === null ? [] : [...inner.items.kinds].filter((kind) => kind !== 'object').toSorted();
    const of = items.length === 0 ? '' : ` of ${items.join(' | ')}`;
    const kinds = [...plain, ...nested].join(' | ');
    return [`${indent}${name}${isOptional ? '?' : ''}: ${kinds}${of}`, ...linesOf(inner, `${indent}  `)];
  });
  return [...own, ...(shape.items === null ? [] : linesOf(shape.items, indent))];
}
