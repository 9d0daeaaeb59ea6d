-- with: keys clock jobs priority limits
-- Moves jobs from queues into a node's lists.
-- ARGV: the namespace's prefix, the node, how many at most, then two for each queue: its name and how many of its jobs may be in
-- flight at all nodes together, or "". Returns a list for each queue, the oldest job first.
--
-- A job is put into the new list before it leaves the old one: if a command fails in between, the job is there twice, and not
-- lost. Redis does not roll back: https://redis.io/docs/latest/develop/using-commands/transactions/
local node, room = ARGV[2], tonumber(ARGV[3])
local lists = lists_of(node)
local now = clock()
local paused = redis.call('EXISTS', key('paused')) == 1
local priorities = redis.call('EXISTS', prioritized) == 1
local answers = {}
begin_writing(node)
redis.call('SADD', key('ringspun:nodes'), node)

local limited = redis.call('EXISTS', limits) == 1
local leased

-- Without a lease others could take over at once what it gets.
local function free(queue, limit)
  if limit_of(queue) ~= limit then redis.call('HSET', limits, queue, limit) end
  if leased == nil then leased = redis.call('EXISTS', key('ringspun:alive:' .. node)) == 1 end
  if not leased then return 0 end
  return room_beside(running_of(queue) + waiting_of(queue, now), queue, limit, now)
end

local function take(from, queue, count, moved)
  local to = backup(node, queue)
  while count > 0 do
    local some = redis.pcall('LRANGE', from, -math.min(count, 1000), -1)
    if #some == 0 then break end -- or an error: a queue whose key has another type is no reason to stop serving the others
    local oldest_first = {}
    for i = #some, 1, -1 do
      oldest_first[#oldest_first + 1] = some[i]
      moved[#moved + 1] = some[i]
    end
    redis.call('SADD', lists, queue)
    redis.call('LPUSH', to, unpack(oldest_first))
    redis.call('LTRIM', from, 0, -#some - 1)
    count = count - #some
  end
end

local function move(queue, count)
  local moved = {}
  if not priorities or redis.call('SISMEMBER', prioritized, queue) == 0 then
    take(queue_key(queue), queue, count, moved)
    return moved
  end
  for _, list in ipairs(lists_of_queue(queue)) do
    if #moved < count then take(list, queue, count - #moved, moved) end
  end
  forget_levels(queue)
  return moved
end

for i = 4, #ARGV, 2 do
  local queue, limit = ARGV[i], tonumber(ARGV[i + 1])
  local moved = {}
  if limited and not limit then redis.call('HDEL', limits, queue) end
  if priorities and redis.call('SISMEMBER', prioritized, queue) == 1 then sort(queue) end
  if room > 0 and not (paused and redis.call('SISMEMBER', key('paused'), queue) == 1) then
    moved = move(queue, limit and math.min(room, free(queue, limit)) or room)
  end
  room = room - #moved
  answers[#answers + 1] = moved
end
deal()
return answers
