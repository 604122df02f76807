/** Shows the reference in the colours that the reader's system prefers. Keys typed in are held only while it is open. */

const dark = matchMedia('(prefers-color-scheme: dark)');
const followSystem = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', followSystem);
followSystem();

/**
 * A request that Swagger UI made: a map of its own kind, and so are its headers.
 * @typedef {{ get(name: 'url'): string, get(name: 'headers'): Iterable<[string, string]> | undefined }} ShownRequest
 */

/** @param {ShownRequest} request */
const urlOf = (request) => JSON.stringify(request.get('url'));
/** @param {ShownRequest} request */
const headersOf = (request) => JSON.stringify(Object.fromEntries(request.get('headers') ?? []));

/** Stands for the gateway in the document. */
const EXAMPLE_ORIGIN = 'https://gateway.example';
/** Where this gateway is, as the reader reaches it, with whatever prefix is in front of it. */
const gateway = new URL('.', location.href).href.replace(/\/$/, '');
const response = await fetch('openapi.json');
const text = await response.text();

SwaggerUIBundle({
  spec: JSON.parse(text.replaceAll(EXAMPLE_ORIGIN, gateway)),
  dom_id: '#reference',
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null,
  requestSnippetsEnabled: true,
  requestSnippets: {
    generators: {
      curl_bash: { title: 'curl', syntax: 'bash' },
      javascript: { title: 'JavaScript', syntax: 'javascript' },
      python: { title: 'Python', syntax: 'python' },
    },
    defaultExpanded: true,
  },
  plugins: [
    {
      fn: {
        /** @param {ShownRequest} request */
        requestSnippetGenerator_javascript: (request) => `const response = await fetch(${urlOf(request)}, {
  headers: ${headersOf(request)},
});
console.log(response.status, await response.json());`,
        /** @param {ShownRequest} request */
        requestSnippetGenerator_python: (request) => `import requests

response = requests.get(
    ${urlOf(request)},
    headers=${headersOf(request)},
)
print(response.status_code, response.json())`,
      },
    },
  ],
});
