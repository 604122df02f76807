/** The part of the package that is used here; the published types are of a version without `preferred`. */
declare module 'negotiator' {
  export default class Negotiator {
    constructor(request: { readonly headers: Readonly<Record<string, string | undefined>> });
    /** The offered coding that the client prefers; among equals, the first of `preferred`. */
    encoding(available: readonly string[], options: { readonly preferred: readonly string[] }): string | undefined;
  }
}
