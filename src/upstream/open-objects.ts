/** The objects that the interface leaves open (a rubric, deal insights) are passed on as they are, but for this. */

/** Internal members of the store. They are dropped from open objects too, at any depth. */
export const INTERNAL_MEMBERS: ReadonlySet<string> = new Set([
  'modelRun',
  'reviewerNotes',
  'costCents',
  'internalFlags',
]);

/** The object without the internal members; itself where it has none. For objects of bounded depth. */
export function withoutInternalMembers(object: OpenObject): OpenObject {
  return holdsInternalMembers(object) ? cleanedObject(object) : object;
}

type OpenObject = Readonly<Record<string, unknown>>;

function holdsInternalMembers(value: unknown): boolean {
  if (Array.isArray(value)) return value.some((element) => holdsInternalMembers(element));
  if (!isObject(value)) return false;
  return Object.keys(value).some((name) => INTERNAL_MEMBERS.has(name) || holdsInternalMembers(value[name]));
}

function cleanedObject(object: OpenObject): OpenObject {
  // fromEntries defines members, so that one named __proto__ stays a member.
  return Object.fromEntries(
    Object.entries(object)
      .filter(([name]) => !INTERNAL_MEMBERS.has(name))
      .map(([name, member]) => [name, cleaned(member)]),
  );
}

function cleaned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((element: unknown) => cleaned(element));
  return isObject(value) ? cleanedObject(value) : value;
}

function isObject(value: unknown): value is OpenObject {
  return typeof value === 'object' && value !== null;
}
