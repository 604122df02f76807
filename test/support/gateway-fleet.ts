/** The names under which the tests of Redis's topologies know the world of `world.ts`. */
export {
  dependency,
  FAILOVER,
  nth,
  quotasAreExact,
  redisIsWell,
  startFleet,
  WITHIN,
  type World as GatewayFleet,
} from './world.ts';
