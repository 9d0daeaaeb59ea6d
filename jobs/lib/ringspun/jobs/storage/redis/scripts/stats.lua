-- with: keys priority
-- Counts everything. ARGV: the namespace's prefix. Returns processed, failed, enqueued, scheduled, retries, dead, in flight,
-- nodes, and a list with two for each queue: its name and size.
local enqueued, in_flight, queues = 0, 0, {}
for _, queue in ipairs(redis.call('SMEMBERS', key('queues'))) do
  local size = 0
  for _, list in ipairs(lists_of_queue(queue)) do size = size + redis.call('LLEN', list) end
  enqueued = enqueued + size
  queues[#queues + 1] = queue
  queues[#queues + 1] = size
end
local nodes = redis.call('SMEMBERS', key('ringspun:nodes'))
for _, node in ipairs(nodes) do
  for _, queue in ipairs(redis.call('SMEMBERS', lists_of(node))) do
    in_flight = in_flight + redis.call('LLEN', backup(node, queue))
  end
end
local function number(name) return tonumber(redis.call('GET', key('stat:' .. name)) or 0) end
local function size(set) return redis.call('ZCARD', key(set)) end
return { number('processed'), number('failed'), enqueued, size('schedule'), size('retry'), size('dead'), in_flight, #nodes,
  queues }
