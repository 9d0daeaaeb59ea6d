-- Jobs of a queue run in the order of their priority, a field of theirs; those without it have 0, and wait in the queue's list as
-- ever. The others wait in a list for each level, which the queue's set of levels names. But a job that comes into an empty
-- queue goes into the queue's list, for there workers wait; `sort_front` brings it to its level if it is still there when somebody
-- looks. A set names the queues at which to look for any of that.
local prioritized = key('ringspun:prioritized')

local function level_key(queue, level) return key('ringspun:priority:' .. level .. ':' .. queue) end

local function levels_key(queue) return key('ringspun:levels:' .. queue) end

local function priority_of(entry)
  if not string.find(entry, '"priority"', 1, true) then return 0 end
  local read, job = pcall(cjson.decode, entry)
  local level = read and type(job) == 'table' and job['priority']
  if type(level) ~= 'number' or level ~= math.floor(level) or math.abs(level) > 1000000 then return 0 end
  return level
end

-- Adds a job to a level, at the end by LPUSH, in front by RPUSH. Nothing here may raise: the job may be nowhere else by now.
local function to_level(queue, level, entry, push)
  local name = string.format('%d', level)
  local named = redis.pcall('ZADD', levels_key(queue), level, name)
  if type(named) == 'table' then return named end
  return redis.pcall(push, level_key(queue, name), entry)
end

-- Brings what stands in front of a queue's list to its level.
local function sort_front(queue)
  for _ = 1, 1000 do
    local entry = redis.pcall('LINDEX', queue_key(queue), -1)
    local level = type(entry) == 'string' and priority_of(entry) or 0
    if level == 0 or type(to_level(queue, level, entry, 'RPUSH')) == 'table' then return end
    redis.pcall('RPOP', queue_key(queue))
  end
end

-- Adds a job to a queue: at its end by LPUSH, in front by RPUSH. Returns what that returns, or its error.
local function line_up(queue, entry, push)
  local level = priority_of(entry)
  if push == 'RPUSH' and redis.pcall('SISMEMBER', prioritized, queue) == 1 then sort_front(queue) end
  if level ~= 0 then
    redis.pcall('SADD', prioritized, queue)
    if redis.call('EXISTS', queue_key(queue), levels_key(queue)) > 0 then return to_level(queue, level, entry, push) end
  end
  return redis.pcall(push, queue_key(queue), entry)
end

-- The lists of a queue in the order in which they are fetched from.
local function lists_of_queue(queue)
  local lists = {}
  for _, range in ipairs({ { '-inf', '(0' }, { '(0', '+inf' } }) do
    for _, level in ipairs(redis.call('ZRANGEBYSCORE', levels_key(queue), range[1], range[2])) do
      lists[#lists + 1] = level_key(queue, level)
    end
    if range[1] == '-inf' then lists[#lists + 1] = queue_key(queue) end
  end
  return lists
end

-- Removes a job from a queue. Returns 1 if it was there, and else 0.
local function remove_from(queue, entry)
  local removed = redis.call('LREM', queue_key(queue), -1, entry)
  local level = removed == 0 and priority_of(entry) or 0
  if level == 0 then return removed end
  return redis.call('LREM', level_key(queue, string.format('%d', level)), -1, entry)
end
