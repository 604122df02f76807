/**
 * ECMAScript's "JSON.parse source text access" (https://tc39.es/proposal-json-parse-with-source), which Node.js 21 and later
 * have and TypeScript's library does not declare yet.
 */
interface JSON {
  /** Stands for a primitive that `JSON.stringify` writes as that text. Throws a SyntaxError if the text is no JSON primitive. */
  rawJSON(text: string): { readonly rawJSON: string };
}
