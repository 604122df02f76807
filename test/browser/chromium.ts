/** A headless Chromium: the one that is named or installed, else the one that comes as a package. */
import { type Browser, chromium } from 'playwright-core';
import { programOnPath } from '../support/process.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** Rejects, saying what to do, if there is no browser. */
export async function launchChromium(): Promise<Browser> {
  try {
    return await chromium.launch({ executablePath: await findChromium(), args: ['--no-sandbox'] });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(
      `The browser tests found no Chromium that starts. Set CHROMIUM_PATH to one, or install one as ${NAMES.join(', ')} on the PATH, or run npm ci so that the package @sparticuz/chromium is there. The reason was: ${reason}`,
      { cause: error },
    );
  }
}

async function findChromium(): Promise<string> {
  const named = process.env['CHROMIUM_PATH'];
  if (named !== undefined && named !== '') return named;
  const installed = NAMES.map(programOnPath).find((path) => path !== null);
  return installed ?? packaged();
}

/**
 * The package unpacks the shared libraries that its browser needs only where it believes to be in the place that it was
 * made for. The arguments that it suggests are for that place: with one of them the browser ends with its first page.
 */
async function packaged(): Promise<string> {
  process.env['AWS_EXECUTION_ENV'] ??= 'AWS_Lambda_nodejs22.x';
  process.env['AWS_LAMBDA_JS_RUNTIME'] ??= 'nodejs22.x';
  const { default: bundled } = await import('@sparticuz/chromium');
  return bundled.executablePath();
}
