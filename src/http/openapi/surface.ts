/** Cuts the document of one surface out of the whole. */
import type { OpenApiDocument } from './document.ts';
import { TAGS } from './info.ts';
import { surfaceOfPath } from './paths.ts';
import type { Surface } from './responses.ts';

type Components = NonNullable<OpenApiDocument['components']>;
type Paths = NonNullable<OpenApiDocument['paths']>;

/** The part of the document that describes one surface, with the components that it needs and no others. */
export function documentFor(document: OpenApiDocument, surface: Surface): OpenApiDocument {
  const paths: Paths = Object.fromEntries(
    Object.entries(document.paths ?? {}).filter(([path]) => surfaceOfPath(path) === surface),
  );
  return {
    ...document,
    tags: (document.tags ?? []).filter((tag) => tag.name === TAGS[surface].name),
    paths,
    components: neededComponents(document.components ?? {}, paths),
  };
}

/** Follows references from the paths until no new component turns up. */
function neededComponents(components: Components, paths: Paths): Components {
  const needed = new Set<string>();
  const pending: unknown[] = [paths];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    for (const name of namesIn(node)) {
      if (needed.has(name)) continue;
      needed.add(name);
      pending.push(componentOf(components, name));
    }
  }
  return Object.fromEntries(
    Object.entries(components).map(([kind, members]: [string, object]) => [
      kind,
      Object.fromEntries(Object.entries(members).filter(([name]) => needed.has(`${kind}/${name}`))),
    ]),
  );
}

/** Every component that a part of the document names: by a reference, or as a security scheme. */
function namesIn(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([key, value]: [string, unknown]) => {
    if (key === '$ref' && typeof value === 'string') return [value.replace('#/components/', '')];
    if (key === 'security' && Array.isArray(value)) {
      return value.flatMap((requirement: object) => Object.keys(requirement).map((name) => `securitySchemes/${name}`));
    }
    return namesIn(value);
  });
}

function componentOf(components: Components, name: string): unknown {
  const [kind = '', member = ''] = name.split('/');
  const members: unknown = Reflect.get(components, kind);
  return typeof members === 'object' && members !== null ? Reflect.get(members, member) : undefined;
}
