/** Shows the reference in the colours that the reader's system prefers. Keys typed in are held only while it is open. */

const dark = matchMedia('(prefers-color-scheme: dark)');
const followSystem = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', followSystem);
followSystem();

SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  showCommonExtensions: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
