-- with: keys clock
-- Shows a node to dashboards, in the keys of Sidekiq and Exq, for as long as they do:
-- https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/launcher.rb (beat)
-- https://github.com/akira/exq/blob/master/lib/exq/redis/job_stat.ex (node_ping)
-- ARGV: the namespace's prefix, the node, how many fields, each with its value, then two for each job that runs: its slot, and
-- what is shown of it.
local node, fields = ARGV[2], tonumber(ARGV[3])
local _, score = clock()
local first = 4 + 2 * fields
for _, set in ipairs(keys_of_exq('processes')) do redis.call('SADD', set, node) end
for _, hash in ipairs(keys_of_exq(node)) do
  redis.call('HSET', hash, 'beat', score, unpack(ARGV, 4, first - 1))
  redis.call('EXPIRE', hash, 60)
end
for _, form in ipairs({ ':work', ':workers' }) do
  local hash = key(node .. form)
  redis.call('UNLINK', hash)
  for i = first, #ARGV, 2 do redis.call('HSET', hash, ARGV[i], ARGV[i + 1]) end
  redis.call('EXPIRE', hash, 60)
end
