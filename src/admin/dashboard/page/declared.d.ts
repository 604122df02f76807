import type * as api from '../../../operations/api.ts';

/** The endpoints of the gateway that serves the page; see `dashboard/files.ts`. */
export declare const ROUTES: typeof api.ROUTES & typeof api.PROBES;
/** The classes of answers, in the order in which they are shown everywhere. */
export declare const CLASSES: readonly string[];
/** Where the runbook is published. */
export declare const RUNBOOK: string;
