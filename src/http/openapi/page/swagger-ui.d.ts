/** The part that the page uses of the bundle of swagger-ui-dist, which comes without types. */
declare function SwaggerUIBundle(options: Readonly<Record<string, unknown>>): void;
