-- with: keys priority
-- Counts everything. ARGV: the namespace's prefix. Returns processed, failed, enqueued, scheduled, retries, dead, in flight,
-- nodes, runs of jobs that were taken away, a list with two for each queue: its name and size; and the queues that cannot be read,
-- for somebody has put something else where their jobs are.
local enqueued, in_flight, queues, unreadable = 0, 0, {}, {}

local function is(place, kind)
  local found = redis.call('TYPE', place).ok
  return found == 'none' or found == kind
end

for _, queue in ipairs(redis.call('SMEMBERS', key('queues'))) do
  local size = 0
  for _, list in ipairs(lists_of_queue(queue)) do size = size + size_of(list) end
  enqueued = enqueued + size
  queues[#queues + 1] = queue
  queues[#queues + 1] = size
  if not (is(queue_key(queue), 'list') and is(levels_key(queue), 'zset')) then unreadable[#unreadable + 1] = queue end
end
local nodes = redis.call('SMEMBERS', key('ringspun:nodes'))
for _, node in ipairs(nodes) do
  for _, queue in ipairs(redis.call('SMEMBERS', lists_of(node))) do in_flight = in_flight + size_of(backup(node, queue)) end
end
local function number(name) return tonumber(redis.call('GET', key(name)) or 0) end
local function size(set) return redis.call('ZCARD', key(set)) end
return { number('stat:processed'), number('stat:failed'), enqueued, size('schedule'), size('retry'), size('dead'), in_flight, #nodes,
  number('ringspun:twice'), queues, unreadable }
