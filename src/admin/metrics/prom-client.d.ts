/** The default metrics one by one; the package's types have them only all together. */
declare module 'prom-client/lib/metrics/*.js' {
  import type { Registry } from 'prom-client';

  const register: (registry: Registry, options?: { readonly eventLoopMonitoringPrecision: number }) => void;
  export default register;
}
