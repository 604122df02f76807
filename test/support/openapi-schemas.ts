/** Finds and compiles the schemas of an OpenAPI document by where they stand in it. Knows nothing of how it was made. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/** The faults of a value, in words; empty if there are none. */
export type ValueCheck = (value: unknown) => readonly string[];

/** A place in the document: the steps to it from its root. */
export type Place = readonly string[];

export class DocumentSchemas {
  readonly #document: object;
  readonly #ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true });

  constructor(document: object) {
    this.#document = document;
    addFormats.default(this.#ajv);
    // The document itself is no schema; its members are made known so that strict mode stays on for the schemas in it.
    this.#ajv.addVocabulary(Object.keys(document));
    this.#ajv.addSchema(document, 'openapi');
  }

  /** The value at a place, and its real place after references are followed; undefined if there is none. */
  at(place: Place): { readonly value: unknown; readonly place: Place } {
    const value = place.reduce((node, step) => memberOf(node, step), this.#document as unknown);
    const reference = memberOf(value, '$ref');
    if (typeof reference !== 'string') return { value, place };
    return this.at(reference.replace('#/', '').split('/').map(unescapeStep));
  }

  /** The names of the members at a place. */
  keysAt(place: Place): string[] {
    const { value } = this.at(place);
    return typeof value === 'object' && value !== null ? Object.keys(value) : [];
  }

  /** A check against the schema at a place. Throws if there is none or it cannot be compiled. */
  checkAt(place: Place): ValueCheck {
    const pointer = this.at(place).place.map(escapeStep).join('/');
    const validate = this.#ajv.getSchema(`openapi#/${pointer}`);
    if (validate === undefined) throw new Error(`There is no schema at #/${pointer}`);
    return (value) => {
      if (validate(value) === true) return [];
      return (validate.errors ?? []).map((error) => {
        const particulars = Object.values(error.params).map(String).join(', ');
        return `${error.instancePath === '' ? 'the value' : error.instancePath} ${error.message ?? ''} (${particulars})`;
      });
    };
  }
}

/** The own member of that name; undefined if there is none. */
export function memberOf(node: unknown, name: string): unknown {
  return typeof node === 'object' && node !== null && Object.hasOwn(node, name) ? Reflect.get(node, name) : undefined;
}

/** JSON Pointer (RFC 6901) in a URI fragment. */
function escapeStep(step: string): string {
  return encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'));
}

function unescapeStep(step: string): string {
  return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
}
