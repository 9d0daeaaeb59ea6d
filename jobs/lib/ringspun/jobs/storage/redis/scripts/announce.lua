-- with: clock
-- Shows a node to dashboards. ARGV: the namespace's prefix, the node, how many fields, those with their values, then two for each
-- job that runs: its slot, and what is shown of it.
local ns, node, fields = ARGV[1], ARGV[2], tonumber(ARGV[3])
local _, score = clock()
local first = 4 + 2 * fields
local homes = { ns }
-- Exq without a namespace looks for these two with a colon in front, and only for them.
if ns == '' then homes[2] = ':' end
for _, home in ipairs(homes) do
  redis.call('SADD', home .. 'processes', node)
  redis.call('HSET', home .. node, 'beat', score, unpack(ARGV, 4, first - 1))
  redis.call('EXPIRE', home .. node, 60)
end
for _, form in ipairs({ ':work', ':workers' }) do
  local key = ns .. node .. form
  redis.call('UNLINK', key)
  for i = first, #ARGV, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
  redis.call('EXPIRE', key, 60)
end
