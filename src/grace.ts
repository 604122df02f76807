/** How long each part of an orderly end may take. */

/** For requests that are under way when the public listener stops accepting. */
export const IN_FLIGHT_GRACE_MS = 30_000;
/** The same for the admin listener. */
export const ADMIN_GRACE_MS = 5000;
/** For spans that were not sent yet. */
export const TRACES_GRACE_MS = 3000;
