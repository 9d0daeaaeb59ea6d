-- Somebody sleeps until the next job is due: `ringspun:wakes` says until when, and who. What is stored and due earlier, and before
-- all look again in any case, is told to one of those who wait at a list; see Storage#wait_due. A list has at most one member.
local function wakes()
  local at, who = string.match(redis.call('GET', key('ringspun:wakes')) or '', '^(%S+) (.*)$')
  return tonumber(at or nil), who
end

local function wake(at, now)
  if at - now >= 4 then return end
  local until_then = wakes()
  if until_then and until_then > now and until_then <= at then return end
  if redis.call('EXISTS', key('ringspun:due')) == 0 then redis.pcall('LPUSH', key('ringspun:due'), '') end
end

-- Whether it is the caller who wakes then.
local function wakes_then(at, by, now)
  if by == '' then return true end
  local until_then, who = wakes()
  if until_then and until_then > now and until_then <= at and who ~= by then return false end
  redis.pcall('SET', key('ringspun:wakes'), string.format('%.6f ', at) .. by, 'PX', math.ceil((at - now) * 1000) + 1000)
  return true
end
