-- Jobs of a queue run in the order of their priority, Wire::PRIORITY; those without it have 0, and wait in the queue's list as
-- ever. The others have a list for each level, which the queue's set of levels names. A set names the queues at which to look for
-- any of that.
--
-- But workers wait at the queue's list, and one that waits must get a job as soon as there is some. So at the end of every script
-- `deal` puts the first jobs of the levels into that list when it is empty, or was before, and `sort_front` brings them back
-- before anything but a push is done with the queue. After every script there is a job in the list if there is one in a level.
local prioritized = key('ringspun:prioritized')

local function level_key(queue, level) return key('ringspun:priority:' .. level .. ':' .. queue) end

local function levels_key(queue) return key('ringspun:levels:' .. queue) end

-- See Wire::PRIORITY_MAX: a fetch looks at each level.
local function priority_of(entry)
  if not string.find(entry, '"ringspun_priority"', 1, true) then return 0 end
  local read, job = pcall(cjson.decode, entry)
  local level = read and type(job) == 'table' and job['ringspun_priority']
  if type(level) ~= 'number' or level ~= math.floor(level) then return 0 end
  return math.max(-100, math.min(level, 100))
end

-- Adds a job to a level, at the end by LPUSH, in front by RPUSH. Nothing here may raise: the job may be nowhere else by now.
local function to_level(queue, level, entry, push)
  local name = string.format('%d', level)
  local named = redis.pcall('ZADD', levels_key(queue), level, name)
  if type(named) == 'table' then return named end
  return redis.pcall(push, level_key(queue, name), entry)
end

-- The most jobs that are dealt. More workers may wait: those who get one fetch next, and that deals again.
local DEALT = 16

-- Brings the jobs with a priority that stand in front of a queue's list to the front of their levels.
local function sort_front(queue)
  local found
  repeat
    found = false
    local some = redis.pcall('LRANGE', queue_key(queue), -DEALT, -1)
    for _, entry in ipairs(some.err and {} or some) do
      local level = priority_of(entry)
      if level ~= 0 then
        if type(to_level(queue, level, entry, 'RPUSH')) == 'table' then return end
        redis.pcall('LREM', queue_key(queue), -1, entry)
        found = true
      end
    end
  until not found
end

-- The queues to which this script does something, each with whether its list was empty before; and those that it has sorted.
local touched, sorted = {}, {}

-- Before a job comes to the end of a queue. Call `deal` at the end.
local function touch(queue)
  if touched[queue] == nil then touched[queue] = redis.call('EXISTS', queue_key(queue)) == 0 end
end

-- Before anything else is done with a queue.
local function sort(queue)
  touch(queue)
  if not sorted[queue] and redis.pcall('SISMEMBER', prioritized, queue) == 1 then sort_front(queue) end
  sorted[queue] = true
end

-- Moves jobs from a level into the queue's list: in front of it by RPUSH, to its end by LPUSH. Returns how many.
local function deal_from(queue, level, count, push)
  local from, oldest_first = level_key(queue, level), {}
  local some = redis.pcall('LRANGE', from, -count, -1)
  if #some == 0 then return 0 end
  for i = #some, 1, -1 do oldest_first[#oldest_first + 1] = some[i] end
  local pushed = redis.pcall(push, queue_key(queue), unpack(push == 'LPUSH' and oldest_first or some))
  if type(pushed) == 'table' then return 0 end
  redis.pcall('LTRIM', from, 0, -#some - 1)
  return #some
end

local function size_of(list)
  local size = redis.pcall('LLEN', list)
  return type(size) == 'number' and size or 0
end

-- Nothing here may raise: the script has done its work.
local function deal_queue(queue)
  local room, fronts = DEALT, {}
  for _, level in ipairs(redis.pcall('ZRANGEBYSCORE', levels_key(queue), '-inf', '(0')) do
    local size = math.min(room, size_of(level_key(queue, level)))
    if size > 0 then fronts[#fronts + 1] = { level, size } end
    room = room - size
  end
  for i = #fronts, 1, -1 do deal_from(queue, fronts[i][1], fronts[i][2], 'RPUSH') end
  room = DEALT - size_of(queue_key(queue))
  for _, level in ipairs(redis.pcall('ZRANGEBYSCORE', levels_key(queue), '(0', '+inf')) do
    if room <= 0 then return end
    room = room - deal_from(queue, level, room, 'LPUSH')
  end
end

local function deal()
  for queue, was_empty in pairs(touched) do
    if redis.call('EXISTS', levels_key(queue)) == 1 and (was_empty or redis.call('EXISTS', queue_key(queue)) == 0) then
      deal_queue(queue)
    end
  end
end

-- Adds a job to a queue: at its end by LPUSH, in front by RPUSH. Returns what that returns, or its error. In the quarantine all
-- have the same priority.
local function line_up(queue, entry, push)
  local level = queue == 'ringspun-quarantine' and 0 or priority_of(entry)
  touch(queue)
  if push == 'RPUSH' then sort(queue) end
  if level == 0 then return redis.pcall(push, queue_key(queue), entry) end
  -- Where the key of the queue has another type, nobody could fetch the job.
  local size = redis.pcall('LLEN', queue_key(queue))
  if type(size) == 'table' then return size end
  redis.pcall('SADD', prioritized, queue)
  return to_level(queue, level, entry, push)
end

-- The lists of a queue in the order in which they are fetched from. Where the set of levels has another type, an error is a table
-- without members.
local function lists_of_queue(queue)
  local lists = {}
  for _, range in ipairs({ { '-inf', '(0' }, { '(0', '+inf' } }) do
    for _, level in ipairs(redis.pcall('ZRANGEBYSCORE', levels_key(queue), range[1], range[2])) do
      lists[#lists + 1] = level_key(queue, level)
    end
    if range[1] == '-inf' then lists[#lists + 1] = queue_key(queue) end
  end
  return lists
end

-- Forgets the levels of a queue in which there are no jobs any more.
local function forget_levels(queue)
  for _, level in ipairs(redis.pcall('ZRANGE', levels_key(queue), 0, -1)) do
    if redis.call('EXISTS', level_key(queue, level)) == 1 then return end
    redis.call('ZREM', levels_key(queue), level)
  end
  redis.call('SREM', prioritized, queue)
end
