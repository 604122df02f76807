export { TcpProxy as MessagesProxy } from './tcp-proxy.ts';
