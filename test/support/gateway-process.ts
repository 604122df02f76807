export { GatewayProcess } from './process.ts';
