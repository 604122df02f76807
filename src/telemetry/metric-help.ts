/** The name of each metric, and its help as Prometheus and docs/metrics.md show it. Names are public. */
export const METRIC_HELP = {
  evalgate_authentication_failures_total: 'Requests refused because of a missing or invalid API key.',
  evalgate_build_info: 'Always 1; the labels name the versions of evalgate and Node.js.',
  evalgate_cache_bytes:
    'Bytes held by the memory tier, as it weighs its entries; evalgate_redis_memory_used_bytes has those in Redis.',
  evalgate_cache_entries: 'Answers held by the memory tier; evalgate_redis_keys has those in Redis.',
  evalgate_cache_entry_age_seconds: 'Age of served answers, from the store call on; near 0 for answers just fetched.',
  evalgate_cache_lease_wait_seconds:
    "Time that reads waited for another process's call to the store, by how the wait ended: stored (its answer came), failed (its failure came), taken-over (it came to nothing), timeout.",
  evalgate_cache_fallbacks_total:
    'Reads that got an old copy (stale-if-error, changed) or nothing (failed), by why the store gave no better: the outcome of its call, or overloaded, suspended and paused if none was sent.',
  evalgate_cache_limit_bytes: 'Bytes that the memory tier may hold.',
  evalgate_cache_misses_total: 'Reads that the cache could not answer, by reason.',
  evalgate_cache_reads_total: 'Reads through the cache, by outcome and tier of the entry.',
  evalgate_cache_unstable_calls:
    'Calls that differ in each of their last answers: their parts go by their times, and may be older than a change.',
  evalgate_cache_undecryptable_total:
    'Copies in Redis that could not be decrypted and counted as none, by reason: unknown-key (of a key that CACHE_ENCRYPTION_KEYS lacks), altered, unencrypted (stored by a process without keys, or by somebody else).',
  evalgate_changes_announced_total: 'Changes that the store announced to this process and that were taken.',
  evalgate_changes_last_announced_timestamp_seconds:
    'When the store announced a change last, to any process, Unix time; none before the first since the start.',
  evalgate_config_last_reload_successful: '1 if the configuration that was read last is in force, 0 if it was invalid.',
  evalgate_config_last_success_timestamp_seconds: 'When the configuration in force was read, Unix time.',
  evalgate_config_reloads_total:
    'Times that the configuration was read again, by result: success, or failure, which leaves the old one in force.',
  evalgate_dependency_up: '1 if a dependency of GET /readyz is ok, 0 if it is degraded; absent while it is unknown.',
  evalgate_fleet_processes: 'Gateway processes that share the limits, including this one, as last known.',
  evalgate_gc_time_ratio: 'Share of the time since the last scrape that was spent in garbage collection.',
  evalgate_http_connections: 'Connections that are open, by listener.',
  evalgate_http_connections_cut_total:
    'Connections closed before their clients did, by reason: idle (for a new one, because `server.maxConnections` were open), pipelined (too many requests without an answer), stalled (nothing taken of an answer for 30 s), slow (an answer taken at less than 10 kB/s), unsent (`server.maxUnsent` was reached, and its key or address had most of it).',
  evalgate_http_connections_dropped_total:
    'New connections closed because `server.maxConnections` were open, none of them idle.',
  evalgate_http_request_duration_seconds:
    'Time from the arrival of a request to the end of its answer, by cache outcome.',
  evalgate_http_requests_shed_total: 'Requests refused at once because `server.maxInFlight` were in flight.',
  evalgate_http_requests_total: 'Requests answered on the public listener.',
  evalgate_http_unreadable_requests_total:
    'Answers to unreadable requests, by reason: too-large, too-slow, no-http. They are in no other count.',
  evalgate_http_unsent_bytes: 'Bytes of answers that clients have not taken yet.',
  evalgate_keys: 'API keys in the registry, whatever their status; none before they are counted.',
  evalgate_keys_lost:
    'How many API keys that Redis has lost are still missing, until an operator acknowledges it; else 0.',
  evalgate_known_keys_refused_total: 'Requests refused with 401 although their key was good within the hour.',
  evalgate_log_lines_dropped_total:
    'Lines of the log that were dropped, because standard error did not take them: its disk is full, or nobody reads it.',
  evalgate_maintenance_active: '1 while maintenance keeps the gateway from calling the store.',
  evalgate_objective_budget_ratio:
    'Share of requests that may miss an objective: 0.01 for the 99th percentiles, the rest of objectives.availability.',
  evalgate_objective_missed_total: 'Requests that missed an objective: they took longer, or failed.',
  evalgate_objective_requests_total: 'Requests that count for an objective: hitP99, missP99 or availability.',
  evalgate_quota_exact:
    '1 while Redis decides on the limits of all processes together, 0 while this process enforces its share.',
  evalgate_quota_refusals_total: 'Requests refused with 429, by the window that was full.',
  evalgate_readiness: '1 for the status of the process, as GET /readyz has it; 0 for the others.',
  evalgate_redis_cache_budget_bytes: 'Bytes of Redis that the cache may use (cache.redis), 0 for no limit.',
  evalgate_redis_cache_over_budget:
    '1 while copies in Redis make room for others, because the cache has nearly used its share there (cache.redis, or all but a tenth of maxmemory in a Redis that keys and limits share), else 0.',
  evalgate_redis_command_duration_seconds:
    'Time that commands to Redis took, as measured by this process, including its own delays and failed commands, but not unsent ones.',
  evalgate_redis_command_failures_total:
    'Failed commands to Redis: refused by it, without an answer in time (timeout), cut off before the answer (lost), or without a connection (unsent).',
  evalgate_redis_hearing:
    '1 for the state of messages from other processes: hearing; deaf (Redis answers, its messages do not arrive, and it is asked before memory is used); alone (Redis does not answer). 0 for the others.',
  evalgate_redis_keys:
    'Keys in the database; absent while Redis does not answer. In a Redis only for the cache: its answers and a few leases.',
  evalgate_redis_memory_limit_bytes:
    'Most memory that the Redis server may use (its maxmemory), 0 for no limit; absent while it does not answer.',
  evalgate_redis_memory_used_bytes: 'Memory used by the Redis server; absent while it does not answer.',
  evalgate_redis_refusal:
    '1 for what Redis refuses of all that a gateway needs, by what it is used for, with its reply word for word; 0 with the reason none while it refuses nothing.',
  evalgate_redis_refuses_changes:
    '1 while Redis answers and refuses to write, by reason: full (maxmemory: keys can still be revoked and deprecated, and purges, times and maintenance work) or read-only: requests go on, limits are per process.',
  evalgate_redis_shared:
    '1 if one Redis server has both roles, keys and limits (state) and the cache, 0 if there are two; absent while it is not known.',
  evalgate_redis_up: '1 if Redis answered lately, by what it is used for.',
  evalgate_store_answers_bytes:
    "Bytes of the evaluation store's large answers under way: being read, parsed, rendered or compressed.",
  evalgate_store_answers_waiting: 'Answers of the evaluation store that wait for room (upstream.answerMemory).',
  evalgate_store_breaker_open:
    '1 while the circuit is open for all API keys, because too many calls to the evaluation store failed; one probe per second is sent.',
  evalgate_store_breaker_open_keys:
    'API keys whose own circuit is open, because too many of their calls to the evaluation store failed; other keys are served.',
  evalgate_store_call_duration_seconds: 'Time that calls to the evaluation store took, including failed ones.',
  evalgate_store_calls_in_flight: 'Calls to the evaluation store in flight.',
  evalgate_store_calls_queued: 'Calls to the evaluation store waiting in the queue.',
  evalgate_store_calls_refused_total:
    'Calls to the evaluation store that were not sent, by reason: queue-full, queue-timeout, store-failing (the circuit is open), key-failing (that of the API key is open), or renewal-dropped (the copy is served, and renewed later).',
  evalgate_store_calls_total: 'Calls to the evaluation store, by outcome.',
  evalgate_store_down:
    '1 while the evaluation store is down: the circuit is open for all API keys, or no call has succeeded for 30 s while three or more failed; absent before the first call.',
  evalgate_store_concurrency_limit:
    'Calls to the evaluation store that may be in flight: as many as it bears, if upstream.adaptive is on.',
  evalgate_store_queue_seconds: 'Time that calls to the evaluation store waited in the queue.',
  evalgate_store_records_listed_total: 'Records in lists of the store, with those that were left out.',
  evalgate_store_records_left_out_total:
    'Records left out of lists because the store sent them incomplete or malformed.',
  evalgate_store_retries_total: 'Retries of calls to the evaluation store, by outcome; over-budget ones were not sent.',
} as const;
