/** Exchanges made of nothing but the examples in an OpenAPI document: one for each status of each operation. */
import type { Exchange } from './openapi-check.ts';
import { DocumentSchemas, memberOf, type Place } from './openapi-schemas.ts';

export interface DocumentedExchange extends Exchange {
  readonly operationId: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Every documented response as its examples show it. */
export function exampleExchanges(document: object): DocumentedExchange[] {
  const schemas = new DocumentSchemas(document);
  return schemas.keysAt(['paths']).flatMap((template) => {
    const operation = ['paths', template, 'get'];
    return schemas.keysAt([...operation, 'responses']).map((status) => {
      const response = schemas.at([...operation, 'responses', status]).place;
      return {
        operationId: String(schemas.at([...operation, 'operationId']).value),
        method: status === '405' ? 'POST' : 'GET',
        path: examplePath(schemas, template),
        status: Number(status),
        headers: exampleHeaders(schemas, response),
        body: exampleBody(schemas, response),
      };
    });
  });
}

function examplePath(schemas: DocumentSchemas, template: string): string {
  const place = ['paths', template, 'get', 'parameters'];
  return schemas.keysAt(place).reduce((path, index) => {
    const parameter = schemas.at([...place, index]).value;
    if (memberOf(parameter, 'in') !== 'path') return path;
    return path.replace(`{${String(memberOf(parameter, 'name'))}}`, String(memberOf(parameter, 'example')));
  }, template);
}

function exampleHeaders(schemas: DocumentSchemas, response: Place): Record<string, string> {
  const names = schemas.keysAt([...response, 'headers']);
  const headers = names.map((name) => {
    const header = schemas.at([...response, 'headers', name]).value;
    return [name, String(memberOf(header, 'example'))] as const;
  });
  const [mediaType] = schemas.keysAt([...response, 'content']);
  return Object.fromEntries(mediaType === undefined ? headers : [...headers, ['Content-Type', mediaType]]);
}

function exampleBody(schemas: DocumentSchemas, response: Place): string {
  const [mediaType] = schemas.keysAt([...response, 'content']);
  if (mediaType === undefined) return '';
  return JSON.stringify(schemas.at([...response, 'content', mediaType, 'example']).value);
}
