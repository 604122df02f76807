import packageJson from '../package.json' with { type: 'json' };

/** The gateway's version, as its package has it. */
export const VERSION: string = packageJson.version;
