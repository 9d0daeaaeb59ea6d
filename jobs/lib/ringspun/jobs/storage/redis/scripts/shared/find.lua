-- Finding an entry of a list compares it with all that are nearer to the end where the search begins, and others wait meanwhile. A
-- script that has compared COMPARED_MAX of them, in some hundredths of a second, does no more of what it was asked for.
local compared, COMPARED_MAX = 0, 1000000

local function has_compared_enough() return compared >= COMPARED_MAX end

-- To which end of a list an entry is near, as LREM and LPOS count: -1, where the oldest are, or 1; nil: to none, or it is not there.
-- Looks farther each time. https://redis.io/docs/latest/commands/lpos/
local function near_end(list, entry)
  local size, reach = redis.call('LLEN', list), 32
  repeat
    for _, rank in ipairs({ -1, 1 }) do
      compared = compared + math.min(reach, size)
      if redis.call('LPOS', list, entry, 'RANK', rank, 'MAXLEN', reach) then return rank end
    end
    reach = reach * 8
  until reach * 8 >= size
  compared = compared + size -- by those who look through all of it then
end

-- The lists in which a job of a queue may be.
local function lists_for(queue, entry)
  sort(queue)
  local level = priority_of(entry)
  if level == 0 then return { queue_key(queue) } end
  return { level_key(queue, string.format('%d', level)), queue_key(queue) }
end

local function stands_in(queue, entry)
  for _, list in ipairs(lists_for(queue, entry)) do
    if near_end(list, entry) or redis.call('LPOS', list, entry, 'RANK', -1) then return true end
  end
end

-- Removes a job from a queue. Returns 1 if it was there, and else 0.
local function remove_from(queue, entry)
  for _, list in ipairs(lists_for(queue, entry)) do
    if redis.call('LREM', list, near_end(list, entry) or -1, entry) == 1 then return 1 end
  end
  return 0
end
